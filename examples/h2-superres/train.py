"""Upscaling service: photos arrive in their own sizes and are upscaled one after the other."""
import random
import sys

import torch
import torch.nn as nn


class Upscaler(nn.Module):
    def __init__(self, ch=64, blocks=6):
        super().__init__()
        self.head = nn.Conv2d(3, ch, 3, padding=1)
        self.body = nn.ModuleList([nn.Sequential(nn.Conv2d(ch, ch, 3, padding=1), nn.LeakyReLU(0.1, True), nn.Conv2d(ch, ch, 3, padding=1)) for _ in range(blocks)])
        self.tail = nn.Sequential(nn.Conv2d(ch, 3 * 4, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, x):
        x = self.head(x)
        for block in self.body:
            x = x + block(x)
        return self.tail(x)


@torch.inference_mode()
def main():
    torch.cuda.memory._record_memory_history(max_entries=100000)
    model = Upscaler().cuda().eval()
    rng = random.Random(1)
    for request in range(24):
        height, width = rng.randint(400, 1400), rng.randint(400, 1400)
        photo = torch.rand(1, 3, height, width)
        result = model(photo.cuda()).clamp(0, 1).cpu()
        print(request, tuple(photo.shape[2:]), tuple(result.shape[2:]))
    torch.cuda.memory._dump_snapshot(sys.argv[1])


main()
