import torch
from torch import nn


class Coupling(nn.Module):
    def __init__(self, d, hidden=1024):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d // 2, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, d))

    def forward(self, x):
        a, b = x.chunk(2, -1)
        s, t = self.net(a).chunk(2, -1)
        s = torch.tanh(s)
        return torch.cat([b * s.exp() + t, a], -1), s.sum(-1)


class RealNVP(nn.Module):
    def __init__(self, d=256, n=8):
        super().__init__()
        self.layers = nn.ModuleList([Coupling(d) for _ in range(n)])

    def forward(self, x):
        logdet = 0.0
        for layer in self.layers:
            x, ld = layer(x)
            logdet = logdet + ld
        return x, logdet


flow = RealNVP().cuda()
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-4)


def nll(x):
    z, logdet = flow(x)
    return (0.5 * z.pow(2).sum(-1) - logdet).mean()


for step in range(6):
    x = torch.randn(12000, 256, device="cuda")
    optimizer.zero_grad()
    if step == 4:
        torch.cuda.memory._record_memory_history(max_entries=50000)
    loss = nll(x)
    if step == 4:
        torch.cuda.memory._dump_snapshot("after_forward.pickle")
        torch.cuda.memory._record_memory_history(enabled=None)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
