"""Minimal repro for the issue: "GPU memory increases slowly when I use my own activation Function".

torch 2.11, one GPU. nvidia-smi climbs until the job is killed after ~2 days, so I cut it down to this.
"""
import sys
import torch
import torch.nn as nn
from torch.autograd import Function


class _SoftClamp(Function):
    @staticmethod
    def forward(ctx, x, bound):
        y = torch.tanh(x / bound) * bound
        ctx.y = y
        ctx.bound = bound
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * (1 - (ctx.y / ctx.bound) ** 2), None


class SoftClamp(nn.Module):
    def __init__(self, bound=3.0):
        super().__init__()
        self.bound = bound

    def forward(self, x):
        return _SoftClamp.apply(x, self.bound)


torch.cuda.memory._record_memory_history(max_entries=200000)

net = nn.Sequential(nn.Linear(512, 4096), SoftClamp(), nn.Linear(4096, 512)).cuda()
lr = 1e-2

for it in range(72):
    x = torch.randn(1024, 512, device="cuda")
    loss = (net(x) - x).pow(2).mean()
    loss.backward()
    # plain SGD, to be sure that it is not the optimizer
    with torch.no_grad():
        for p in net.parameters():
            p.add_(p.grad, alpha=-lr)
            p.grad = None
    if it % 24 == 0:
        print(it, torch.cuda.memory_allocated() // 2**20, "MiB")

print("final", torch.cuda.memory_allocated() // 2**20, "MiB")
torch.cuda.memory._dump_snapshot(sys.argv[1])
