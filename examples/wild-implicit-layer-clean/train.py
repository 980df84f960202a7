# Deep equilibrium model with Anderson acceleration, after the "Deep Implicit Layers" tutorial.
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import autograd


class ResLayer(nn.Module):
    def __init__(self, c, inner):
        super().__init__()
        self.conv1 = nn.Conv2d(c, inner, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(inner, c, 3, padding=1, bias=False)
        self.norm1, self.norm2, self.norm3 = nn.GroupNorm(8, inner), nn.GroupNorm(8, c), nn.GroupNorm(8, c)
        self.conv1.weight.data.normal_(0, 0.01)
        self.conv2.weight.data.normal_(0, 0.01)

    def forward(self, z, x):
        y = self.norm1(F.relu(self.conv1(z)))
        return self.norm3(F.relu(z + self.norm2(x + self.conv2(y))))


def anderson(f, x0, m=5, lam=1e-4, max_iter=12, tol=1e-3, beta=1.0):
    bsz, d, H, W = x0.shape
    X = torch.zeros(bsz, m, d * H * W, dtype=x0.dtype, device=x0.device)
    G = torch.zeros(bsz, m, d * H * W, dtype=x0.dtype, device=x0.device)
    X[:, 0], G[:, 0] = x0.reshape(bsz, -1), f(x0).reshape(bsz, -1)
    X[:, 1], G[:, 1] = G[:, 0], f(G[:, 0].view_as(x0)).reshape(bsz, -1)
    Hm = torch.zeros(bsz, m + 1, m + 1, device=x0.device)
    Hm[:, 0, 1:] = Hm[:, 1:, 0] = 1
    y = torch.zeros(bsz, m + 1, 1, device=x0.device)
    y[:, 0] = 1
    for k in range(2, max_iter):
        n = min(k, m)
        R = G[:, :n] - X[:, :n]
        Hm[:, 1:n + 1, 1:n + 1] = torch.bmm(R, R.transpose(1, 2)) + lam * torch.eye(n, device=x0.device)[None]
        alpha = torch.linalg.solve(Hm[:, :n + 1, :n + 1], y[:, :n + 1])[:, 1:n + 1, 0]
        X[:, k % m] = beta * (alpha[:, None] @ G[:, :n])[:, 0] + (1 - beta) * (alpha[:, None] @ X[:, :n])[:, 0]
        G[:, k % m] = f(X[:, k % m].view_as(x0)).reshape(bsz, -1)
        if (G[:, k % m] - X[:, k % m]).norm().item() / (1e-5 + G[:, k % m].norm().item()) < tol:
            break
    return X[:, k % m].view_as(x0)


class DEQ(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        with torch.no_grad():
            z = anderson(lambda z: self.f(z, x), torch.zeros_like(x))
        z = self.f(z, x)
        z0 = z.clone().detach().requires_grad_()
        f0 = self.f(z0, x)

        def backward_hook(grad):
            return anderson(lambda y: autograd.grad(f0, z0, y, retain_graph=True)[0] + grad, grad)

        z.register_hook(backward_hook)
        return z


def epoch(loader, model, opt):
    total = 0.0
    for X, y in loader:
        total += update(X.cuda(), y.cuda(), model, opt)
    return total


def update(X, y, model, opt):
    loss = F.cross_entropy(model(X), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


torch.manual_seed(0)
chan = 48
model = nn.Sequential(nn.Conv2d(3, chan, 3, padding=1), nn.BatchNorm2d(chan), DEQ(ResLayer(chan, 64)),
                      nn.BatchNorm2d(chan), nn.AvgPool2d(8, 8), nn.Flatten(), nn.Linear(chan * 36, 10)).cuda()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
data = [(torch.randn(64, 3, 48, 48), torch.randint(0, 10, (64,))) for _ in range(10)]
torch.cuda.memory._record_memory_history(stacks="python")
print(epoch(data, model, opt))
torch.cuda.memory._dump_snapshot(sys.argv[1])
