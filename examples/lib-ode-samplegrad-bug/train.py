import sys
import torch
from torch import nn
from torchdiffeq import odeint


class Field(nn.Module):
    def __init__(self, dim=256, w=512):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(dim + 1, w), nn.Linear(w, w), nn.Linear(w, dim)

    def forward(self, t, x):
        h = torch.cat([x, t.expand(len(x), 1)], 1)
        h = torch.nn.functional.softplus(self.a(h))
        return self.c(torch.nn.functional.softplus(self.b(h)))


def fm_loss(field, x1):
    x0 = torch.randn_like(x1)
    t = torch.rand(len(x1), 1, device=x1.device)
    xt = (1 - t) * x0 + t * x1
    h = field(t, xt)
    return (h - (x1 - x0)).square().mean()


def sample(field, n):
    field.eval()
    x0 = torch.randn(n, 256, device="cuda")
    ts = torch.linspace(0, 1, 2, device="cuda")
    x = odeint(field, x0, ts, method="midpoint", options={"step_size": 1 / 24})[-1]
    field.train()
    return x.detach().cpu()


def main():
    torch.cuda.memory._record_memory_history(max_entries=300_000, stacks="python")
    field = Field().cuda()
    opt = torch.optim.Adam(field.parameters(), 1e-3)
    for it in range(10):
        loss = fm_loss(field, torch.randn(1024, 256).cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 2 == 1:
            s = sample(field, 1024)
            print(it, loss.item(), s.std().item())
    torch.cuda.memory._dump_snapshot(sys.argv[1])


main()
