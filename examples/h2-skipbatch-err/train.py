"""Training that skips bad batches by raising and catching an exception."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


class BadBatch(RuntimeError):
    pass


def check(loss, step):
    if not torch.isfinite(loss) or step % 2 == 1:
        raise BadBatch(f"step {step}: loss {loss.item():.3f}")


def train_step(model, optimizer, step):
    failure = None
    images = torch.randn(48, 3, 256, 256, device="cuda")
    labels = torch.randint(0, 10, (48,), device="cuda")
    try:
        with torch.no_grad():
            check(F.cross_entropy(model(images), labels), step)
    except BadBatch as err:
        failure = err
    optimizer.zero_grad()
    loss = F.cross_entropy(model(images), labels, label_smoothing=0.1 if failure else 0.0)
    loss.backward()
    optimizer.step()
    return loss.item(), str(failure)


net = nn.Sequential(
    nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(64, 96, 3, padding=1), nn.BatchNorm2d(96), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(96, 128, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
for step in range(24):
    print(step, *train_step(net, optimizer, step))
torch.cuda.memory._dump_snapshot(sys.argv[1])
