# Multiple-instance learning on whole-slide images: a fixed patch encoder, a gated-attention head per slide.
import sys

import timm
import torch
import torch.nn as nn
import torch.nn.functional as F

PATCHES, PATCH_PX, CHUNK = 144, 128, 48


def read_slide(index):
    g = torch.Generator().manual_seed(1000 + index)
    label = index % 2
    patches = torch.rand(PATCHES, 3, PATCH_PX, PATCH_PX, generator=g) + 0.1 * label
    return patches, torch.tensor([label])


class GatedAttentionMIL(nn.Module):
    def __init__(self, dim=512, hidden=256, classes=2):
        super().__init__()
        self.v, self.u = nn.Linear(dim, hidden), nn.Linear(dim, hidden)
        self.w = nn.Linear(hidden, 1)
        self.cls = nn.Linear(dim, classes)

    def forward(self, bag):
        a = self.w(torch.tanh(self.v(bag)) * torch.sigmoid(self.u(bag))).softmax(0)
        return self.cls((a * bag).sum(0, keepdim=True))


def encode(encoder, patches):
    """(P, 3, H, W) on the host -> (P, 512) on the GPU, CHUNK patches at a time."""
    parts = []
    for chunk in patches.split(CHUNK):
        parts.append(encoder(chunk.cuda(non_blocking=True)))
    return torch.cat(parts).detach()


def fit_slide(encoder, head, optimizer, index):
    patches, label = read_slide(index)
    bag = encode(encoder, patches)
    optimizer.zero_grad()
    loss = F.cross_entropy(head(bag), label.cuda())
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.cuda.memory._record_memory_history(max_entries=100_000)
    torch.manual_seed(0)
    encoder = timm.create_model("resnet18", pretrained=False, num_classes=0).cuda().eval()
    head = GatedAttentionMIL().cuda()
    optimizer = torch.optim.Adam(head.parameters(), lr=2e-4, weight_decay=1e-5)
    for slide in range(9):
        print(f"slide {slide} loss {fit_slide(encoder, head, optimizer, slide):.4f}")
    torch.cuda.memory._dump_snapshot(sys.argv[1])


if __name__ == "__main__":
    main()
