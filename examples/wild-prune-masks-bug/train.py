"""Iterative magnitude pruning: every four steps another 20 % of the weights go."""
import sys
import torch
from torch import nn
from torch.nn.utils import prune

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1024, 3072), nn.ReLU(), nn.Linear(3072, 3072), nn.ReLU(), nn.Linear(3072, 1000)).cuda()
targets = [(m, "weight") for m in model if isinstance(m, nn.Linear)]
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def sparsity():
    zeros = sum((m.weight == 0).sum().item() for m, _ in targets)
    return zeros / sum(m.weight.numel() for m, _ in targets)


torch.cuda.memory._record_memory_history(max_entries=100_000)
for step in range(18):
    if step % 4 == 3:
        prune.global_unstructured(targets, pruning_method=prune.L1Unstructured, amount=0.2)
        print(step, f"sparsity {sparsity():.2f}")
    x, y = torch.randn(4096, 1024, device="cuda"), torch.randint(0, 1000, (4096,), device="cuda")
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.cuda.memory._dump_snapshot(sys.argv[1])
