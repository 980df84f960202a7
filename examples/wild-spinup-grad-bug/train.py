"""Learn a sub-grid closure for a shallow-water model by differentiating through short forecasts.

Every sample starts from random bumps, is spun up until gravity waves have dispersed, and then a
forecast of a few steps is compared with a (here: synthetic) high-resolution run.
"""
import sys
import torch
from torch import nn

G, H0, DX, DT = 9.81, 100.0, 1.0e3, 10.0


def ddx(f): return (torch.roll(f, -1, -1) - torch.roll(f, 1, -1)) / (2 * DX)
def ddy(f): return (torch.roll(f, -1, -2) - torch.roll(f, 1, -2)) / (2 * DX)


class Closure(nn.Module):
    def __init__(self, width=20):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, padding_mode="circular"), nn.Softplus(),
            nn.Conv2d(width, width, 3, padding=1, padding_mode="circular"), nn.Softplus(),
            nn.Conv2d(width, 2, 3, padding=1, padding_mode="circular"))

    def forward(self, state):
        return 1e-5 * self.net(state)


class ShallowWater(nn.Module):
    def __init__(self):
        super().__init__()
        self.closure = Closure()

    def step(self, state):
        u, v, h = state.unbind(1)
        du, dv = self.closure(state).unbind(1)
        u = u + DT * (-G * ddx(h) + du)
        v = v + DT * (-G * ddy(h) + dv)
        h = h - DT * H0 * (ddx(u) + ddy(v))
        return torch.stack([u, v, h], 1)

    def spin_up(self, state, n):
        for _ in range(n):
            state = self.step(state)
        return state.detach()

    def forecast(self, state, n):
        out = []
        for _ in range(n):
            state = self.step(state)
            out.append(state)
        return torch.stack(out, 1)


def bumps(batch, n):
    s = torch.zeros(batch, 3, n, n, device="cuda")
    s[:, 2] = torch.nn.functional.avg_pool2d(torch.randn(batch, 1, n, n, device="cuda"), 9, 1, 4)[:, 0]
    return s


def main():
    torch.manual_seed(0)
    torch.cuda.memory._record_memory_history()
    sim = ShallowWater().cuda()
    adam = torch.optim.Adam(sim.parameters(), lr=1e-3)
    for it in range(8):
        state = sim.spin_up(bumps(4, 320), n=14)
        truth = torch.roll(state, 1, -1)[:, None] + 1e-3 * torch.randn(4, 3, 3, 320, 320, device="cuda")
        adam.zero_grad()
        loss = (sim.forecast(state, 3) - truth).square().mean()
        loss.backward()
        adam.step()
        print("iter %d  mse %.3e" % (it, loss.item()))
    torch.cuda.memory._dump_snapshot(sys.argv[1])


main()
