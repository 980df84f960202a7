"""Siamese network with a contrastive loss and a learning rate that falls with every step."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 64, 5, 2, 2), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(), nn.Flatten())
        self.fc = nn.Sequential(nn.Linear(128 * 26 * 26, 512), nn.ReLU(), nn.Linear(512, 128))

    def forward(self, x):
        return F.normalize(self.fc(self.conv(x)), dim=1)


class Learner:
    def __init__(self, net, lr=1e-3):
        self.net, self.lr = net, lr
        self.optimizer = torch.optim.Adam(net.parameters(), lr=lr)

    def set_lr(self, lr):
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=lr)

    def fit(self, a, b, same):
        self.optimizer.zero_grad()
        d = (self.net(a) - self.net(b)).pow(2).sum(1)
        loss = (same * d + (1 - same) * F.relu(1 - d.add(1e-9).sqrt()).pow(2)).mean()
        loss.backward()
        self.optimizer.step()
        return loss.item()


if __name__ == "__main__":
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    learner = Learner(Tower().cuda())
    for step in range(12):
        learner.set_lr(1e-3 * 0.9**step)
        a, b = torch.rand(128, 1, 104, 104, device="cuda"), torch.rand(128, 1, 104, 104, device="cuda")
        print(step, learner.fit(a, b, torch.randint(0, 2, (128,), device="cuda")))
    torch.cuda.memory._dump_snapshot(sys.argv[1])
