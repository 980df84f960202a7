"""Finds the largest batch size that fits (halving after each failure), then trains with it."""
import functools
import gc
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


def find_executable_batch_size(starting_batch_size):
    def decorator(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            batch_size = starting_batch_size
            while batch_size > 0:
                gc.collect()
                torch.cuda.empty_cache()
                try:
                    return function(batch_size, *args, **kwargs)
                except torch.OutOfMemoryError:
                    batch_size //= 2
            raise RuntimeError("no executable batch size found")
        return wrapper
    return decorator


class Segmenter(nn.Module):
    def __init__(self, w=64):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, w, 3, padding=1), nn.GELU(), nn.Conv2d(w, w, 3, padding=1), nn.GELU(), nn.Conv2d(w, w, 3, padding=1), nn.GELU(), nn.Conv2d(w, 21, 1))

    def forward(self, x):
        return self.net(x)


@find_executable_batch_size(starting_batch_size=64)
def train(batch_size, steps):
    print("trying batch size", batch_size)
    model = Segmenter().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(steps):
        x, y = torch.randn(batch_size, 3, 256, 256, device="cuda"), torch.randint(0, 21, (batch_size, 256, 256), device="cuda")
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        print(step, loss.item())


if __name__ == "__main__":
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    torch.cuda.set_per_process_memory_fraction(4 * 2**30 / torch.cuda.get_device_properties(0).total_memory)
    train(steps=10)
    torch.cuda.memory._dump_snapshot(sys.argv[1])
