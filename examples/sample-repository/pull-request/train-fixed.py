"""Trains a classifier on synthetic images for a few steps and writes a memory snapshot: what CI runs on the GPU machine."""

import sys

import torch
from torch.nn import functional as F

from model import Net


def batches(count, size=128):
    for _ in range(count):
        yield torch.randn(size, 3, 64, 64, device="cuda"), torch.randint(100, (size,), device="cuda")


def train(steps):
    model = Net().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses, features = [], []
    for images, labels in batches(steps):
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        features.append(model.features(images).detach().cpu())
    return losses


if __name__ == "__main__":
    torch.cuda.memory._record_memory_history(max_entries=100_000)
    train(steps=10)
    torch.cuda.memory._dump_snapshot(sys.argv[1])
