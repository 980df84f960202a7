"""Render service with per-user style adapters merged into the decoder for the length of one request.

Garbage collection is switched off and run every few requests, as it otherwise adds latency jitter.
"""
import gc
import sys

import torch
from torch import nn
from torch.func import functional_call


class Decoder(nn.Module):
    def __init__(self, width=2048, depth=6):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.to_rgb = nn.Linear(width, 3 * 32 * 32)

    def forward(self, z):
        for layer in self.layers:
            z = z + torch.nn.functional.silu(layer(z))
        return self.to_rgb(z).view(-1, 3, 32, 32)


class Style:
    """Low-rank update of every square layer."""

    def __init__(self, user, width=2048, depth=6, rank=8):
        g = torch.Generator("cuda").manual_seed(user)
        self.down = [torch.randn(rank, width, generator=g, device="cuda") * 0.02 for _ in range(depth)]
        self.up = [torch.randn(width, rank, generator=g, device="cuda") * 0.02 for _ in range(depth)]


class ProgressTracker:
    def __init__(self, request):
        self.request = request
        self.done = 0

    def tick(self, n):
        self.done += n
        return f"{self.request.name}: {self.done}/{self.request.total}"


class Request:
    def __init__(self, name, decoder, style, total):
        self.name, self.total = name, total
        self.decoder = decoder
        self.weights = {
            f"layers.{i}.weight": layer.weight + style.up[i] @ style.down[i] for i, layer in enumerate(decoder.layers)
        }
        self.tracker = ProgressTracker(self)

    def render(self, z):
        images = []
        for part in z.chunk(4):
            images.append(functional_call(self.decoder, self.weights, (part,)).clamp(-1, 1).cpu())
            self.tracker.tick(len(part))
        return torch.cat(images)


@torch.inference_mode()
def handle(decoder, styles, number):
    user = number % len(styles)
    request = Request(f"req-{number}", decoder, styles[user], total=256)
    images = request.render(torch.randn(256, 2048, device="cuda"))
    return images.mean().item()


def main(out, requests=18, gc_every=6):
    torch.manual_seed(0)
    gc.disable()
    torch.cuda.memory._record_memory_history(max_entries=50000)
    decoder = Decoder().cuda().eval()
    styles = [Style(u) for u in range(5)]
    for n in range(requests):
        print(n, round(handle(decoder, styles, n), 4))
        if (n + 1) % gc_every == 0:
            gc.collect()
    torch.cuda.memory._dump_snapshot(out)


if __name__ == "__main__":
    main(sys.argv[1])
