"""Web-navigation agent that clicks on a 128x128 screen grid; clipped policy gradient with a clip range that
follows the measured KL (bandit version, one decision per page)."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

GRID = 128
PAGES = 1024


class Pages:
    def __init__(self, dim=512):
        self.proj = torch.randn(dim, 2, device="cuda")
        self.dim = dim

    def sample(self):
        obs = torch.randn(PAGES, self.dim, device="cuda")
        goal = torch.sigmoid(obs @ self.proj / 8) * GRID
        return obs, goal

    @staticmethod
    def reward(goal, action):
        xy = torch.stack([action % GRID, action // GRID], 1).float()
        return -(xy - goal).norm(dim=1) / GRID


class Agent:
    def __init__(self, dim=512, hidden=1024, target_kl=0.02):
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(),
                                 nn.Linear(hidden, GRID * GRID)).cuda()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=3e-4)
        self.clip, self.target_kl, self.avg_kl = 0.2, target_kl, 0.0

    @torch.no_grad()
    def act(self, obs):
        old = F.log_softmax(self.net(obs), -1)
        return torch.multinomial(old.exp(), 1).squeeze(1), old

    def update(self, obs, action, adv, old):
        logp = F.log_softmax(self.net(obs), -1)
        picked, before = logp.gather(1, action[:, None]), old.gather(1, action[:, None])
        ratio = (picked - before).exp().squeeze(1)
        loss = -torch.min(ratio * adv, ratio.clamp(1 - self.clip, 1 + self.clip) * adv).mean()
        loss.backward()
        self.opt.step()
        self.opt.zero_grad()
        self.watch(logp, old)
        return loss.item()

    def watch(self, logp, old):
        kl = (logp.exp() * (logp - old)).sum(-1).mean()
        self.avg_kl = 0.9 * self.avg_kl + 0.1 * kl
        if self.avg_kl > 1.5 * self.target_kl:
            self.clip = max(0.05, self.clip * 0.9)
        elif self.avg_kl < self.target_kl / 1.5:
            self.clip = min(0.3, self.clip * 1.1)


def main():
    torch.manual_seed(2)
    pages, agent = Pages(), Agent()
    for t in range(18):
        if t == 4:
            torch.cuda.memory._record_memory_history(max_entries=200000, stacks="python")
        obs, goal = pages.sample()
        action, old = agent.act(obs)
        r = pages.reward(goal, action)
        loss = agent.update(obs, action, (r - r.mean()) / r.std(), old)
        del old
        print(f"{t:2d} reward {r.mean().item():.3f} loss {loss:+.4f} clip {agent.clip:.3f}")
    torch.cuda.memory._dump_snapshot(sys.argv[1])


main()
