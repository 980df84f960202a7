import torch
from torch import nn

torch.manual_seed(0)


class MLP(nn.Module):
    def __init__(self, width=1024, depth=4):
        super().__init__()
        dims = [2] + [width] * depth + [1]
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in zip(dims, dims[1:])])

    def forward(self, x, t):
        h = torch.stack([x, t], -1)
        for layer in self.layers[:-1]:
            h = torch.tanh(layer(h))
        return self.layers[-1](h).squeeze(-1)


u = MLP().cuda()
x_f = torch.rand(4000, device="cuda") * 2 - 1
t_f = torch.rand(4000, device="cuda")
x_0 = torch.linspace(-1, 1, 500, device="cuda")
u_0 = -torch.sin(torch.pi * x_0)


def residual():
    x, t = x_f.clone().requires_grad_(), t_f.clone().requires_grad_()
    y = u(x, t)
    y_x, y_t = torch.autograd.grad(y.sum(), (x, t), create_graph=True)
    (y_xx,) = torch.autograd.grad(y_x.sum(), x, create_graph=True)
    return y_t + y * y_x - 0.01 / torch.pi * y_xx


optimizer = torch.optim.LBFGS(u.parameters(), lr=0.5, max_iter=2, history_size=40, tolerance_grad=0, tolerance_change=0)


def closure():
    optimizer.zero_grad()
    loss = residual().pow(2).mean() + (u(x_0, torch.zeros_like(x_0)) - u_0).pow(2).mean()
    loss.backward()
    return loss


for it in range(12):
    if it == 6:
        torch.cuda.memory._record_memory_history(max_entries=200000, stacks="python")
    loss = optimizer.step(closure)
    print(it, loss.item())
torch.cuda.memory._dump_snapshot("burgers_lbfgs.pickle")
