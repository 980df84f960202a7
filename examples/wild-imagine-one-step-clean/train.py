"""Behaviour learning of a Dreamer-like agent: imagine 12 steps ahead in latent space, update actor and critic once."""
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

DETER, STOCH, ACT, HID, H = 512, 64, 6, 512, 12


def mlp(i, o, n=2):
    layers = []
    for _ in range(n):
        layers += [nn.Linear(i, HID), nn.LayerNorm(HID), nn.SiLU()]
        i = HID
    return nn.Sequential(*layers, nn.Linear(HID, o))


class Dynamics(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Sequential(nn.Linear(STOCH + ACT, HID), nn.SiLU())
        self.cell = nn.GRUCell(HID, DETER)
        self.prior = mlp(DETER, 2 * STOCH, 1)

    def forward(self, deter, stoch, act):
        deter = self.cell(self.inp(torch.cat([stoch, act], -1)), deter)
        mean, std = self.prior(deter).chunk(2, -1)
        return deter, Normal(mean, F.softplus(std) + 0.1).rsample()


class Frozen:
    """No weight gradients for these modules, but gradients flow through them."""
    def __init__(self, *modules):
        self.params = [p for m in modules for p in m.parameters()]

    def __enter__(self):
        for p in self.params: p.requires_grad_(False)

    def __exit__(self, *exc):
        for p in self.params: p.requires_grad_(True)


class Agent:
    def __init__(self, dev):
        self.world, self.reward = Dynamics().to(dev), mlp(DETER + STOCH, 1).to(dev)
        self.actor, self.critic, self.slow = mlp(DETER + STOCH, 2 * ACT).to(dev), mlp(DETER + STOCH, 1).to(dev), mlp(DETER + STOCH, 1).to(dev)
        self.slow.load_state_dict(self.critic.state_dict())
        self.slow.requires_grad_(False)
        self.a_opt = torch.optim.Adam(self.actor.parameters(), 8e-5)
        self.c_opt = torch.optim.Adam(self.critic.parameters(), 8e-5)

    def imagine(self, deter, stoch):
        feats = []
        for _ in range(H):
            feat = torch.cat([deter, stoch], -1)
            mean, std = self.actor(feat.detach()).chunk(2, -1)
            act = torch.tanh(Normal(mean, F.softplus(std) + 0.1).rsample())
            deter, stoch = self.world(deter, stoch, act)
            feats.append(torch.cat([deter, stoch], -1))
        return torch.stack(feats)

    def returns(self, reward, value, gamma=0.99, lam=0.95):
        out, last = [], value[-1]
        for t in reversed(range(H - 1)):
            last = reward[t] + gamma * ((1 - lam) * value[t + 1] + lam * last)
            out.append(last)
        return torch.stack(out[::-1])

    def update(self, deter, stoch):
        with Frozen(self.world, self.reward, self.critic):
            feats = self.imagine(deter, stoch)
            target = self.returns(self.reward(feats), self.slow(feats))
            a_loss = -target.mean()
            self.a_opt.zero_grad(set_to_none=True)
            a_loss.backward()
        nn.utils.clip_grad_norm_(self.actor.parameters(), 100.0)
        self.a_opt.step()
        v = self.critic(feats[:-1].detach())
        c_loss = F.mse_loss(v, target.detach())
        self.c_opt.zero_grad(set_to_none=True)
        c_loss.backward()
        self.c_opt.step()
        for s, p in zip(self.slow.parameters(), self.critic.parameters()):
            s.data.lerp_(p.data, 0.02)
        return a_loss.item(), c_loss.item()


torch.manual_seed(0)
agent = Agent("cuda")
starts = lambda: (torch.randn(1600, DETER, device="cuda"), torch.randn(1600, STOCH, device="cuda"))
for _ in range(5):
    agent.update(*starts())
torch.cuda.memory._record_memory_history()
print(agent.update(*starts()))
torch.cuda.memory._dump_snapshot(sys.argv[1])
