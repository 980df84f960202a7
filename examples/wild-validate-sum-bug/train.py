import sys
import torch
from torch import nn

STEPS = 5


def make():
    return nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 64)).cuda()


def validate(model, batches):
    total = 0.0
    for x, y in batches:
        total += nn.functional.mse_loss(model(x), y)
    return total / len(batches)


torch.cuda.memory._record_memory_history(stacks="python")
model = make()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
held_out = [(torch.randn(4096, 256, device="cuda"), torch.randn(4096, 64, device="cuda")) for _ in range(6)]
for step in range(STEPS):
    x, y = torch.randn(1024, 256, device="cuda"), torch.randn(1024, 64, device="cuda")
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, validate(model, held_out).item())
torch.cuda.memory._dump_snapshot(sys.argv[1])
