from itertools import cycle, islice
import sys
import torch
import torch.nn as nn


class VideoClips:
    """Decodes clips straight into GPU memory (NVDEC stand-in). One epoch = 400 batches."""

    def __init__(self, batches=400, batch_size=8):
        self.batches, self.batch_size = batches, batch_size

    def __iter__(self):
        for i in range(self.batches):
            clip = torch.randint(0, 255, (self.batch_size, 3, 16, 224, 224), dtype=torch.uint8, device="cuda")
            yield clip, torch.randint(0, 100, (self.batch_size,), device="cuda")


class C3D(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv3d(3, 32, 3, (1, 2, 2), 1), nn.ReLU(), nn.MaxPool3d(2),
                                  nn.Conv3d(32, 64, 3, 1, 1), nn.ReLU(), nn.MaxPool3d(2),
                                  nn.Conv3d(64, 128, 3, 1, 1), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten())
        self.fc = nn.Linear(128, 100)

    def forward(self, x):
        return self.fc(self.body(x))


def train(model, data, total_iters):
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    model.train()
    stream = cycle(data)          # iterations, not epochs
    for it, (clip, label) in enumerate(islice(stream, total_iters), 1):
        x = clip.to(torch.float32).div_(127.5).sub_(1)
        loss = nn.functional.cross_entropy(model(x), label)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 6 == 0:
            print(f"[{it}/{total_iters}] {loss.item():.3f}")
        del x, loss


if __name__ == "__main__":
    model = C3D().cuda()
    torch.cuda.memory._record_memory_history(context="alloc", stacks="python")
    train(model, VideoClips(), 24)
    torch.cuda.memory._dump_snapshot(sys.argv[1])
