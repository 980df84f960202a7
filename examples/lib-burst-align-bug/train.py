"""Merge a burst of night photographs: deformable alignment to the reference frame."""
import sys

import torch
import torch.nn as nn
from torchvision.ops import Conv2dNormActivation, DeformConv2d


class Align(nn.Module):
    def __init__(self, width, kernel=3):
        super().__init__()
        taps = kernel * kernel
        self.predict = nn.Conv2d(2 * width, 3 * taps, 3, padding=1)
        self.sample = DeformConv2d(width, width, kernel, padding=kernel // 2)
        self.taps = taps
        nn.init.zeros_(self.predict.weight)
        nn.init.zeros_(self.predict.bias)

    def forward(self, frame, reference):
        pred = self.predict(torch.cat([frame, reference], dim=1))
        offset, mask = pred[:, : 2 * self.taps], pred[:, 2 * self.taps:].sigmoid()
        return self.sample(frame, offset, mask)


class BurstNet(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.stem = Conv2dNormActivation(4, width, 3, norm_layer=None)
        self.align = Align(width)
        self.merge = nn.Conv2d(width, width, 1)
        self.to_rgb = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, moving, reference):
        moving, reference = self.stem(moving), self.stem(reference)
        aligned = self.align(moving, reference)
        return self.to_rgb(torch.relu(self.merge(aligned) + reference))


def bursts(steps, pairs=14, size=128, device="cuda"):
    for _ in range(steps):
        clean = torch.rand(pairs, 3, size, size, device=device)
        raw = clean[:, [0, 1, 1, 2]]
        moving = torch.roll(raw, shifts=(2, -3), dims=(2, 3))
        yield moving + 0.1 * torch.randn_like(raw), raw + 0.1 * torch.randn_like(raw), clean


def fit(net, steps=14, record_from=4):
    opt = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    for i, (moving, reference, clean) in enumerate(bursts(steps)):
        if i == record_from:
            torch.cuda.memory._record_memory_history(max_entries=200000)
        opt.zero_grad()
        loss = nn.functional.smooth_l1_loss(net(moving, reference), clean)
        loss.backward()
        opt.step()
        print(f"{i:02d} {loss.item():.4f}")


if __name__ == "__main__":
    fit(BurstNet().cuda())
    torch.cuda.memory._dump_snapshot(sys.argv[1])
