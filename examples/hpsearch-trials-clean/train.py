"""Random search over learning rate, weight decay and dropout; all trials run in this process, one after the other."""
import json
import math
import random
import sys

import torch
from torch import nn
import torch.nn.functional as F


class SeriesNet(nn.Module):
    def __init__(self, dropout, channels=24, hidden=1024, n_out=96):
        super().__init__()
        self.proj = nn.Linear(channels, hidden)
        self.mixers = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(5))
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(5))
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(hidden, n_out)

    def forward(self, x):
        h = self.proj(x)
        for mix, norm in zip(self.mixers, self.norms):
            h = h + self.drop(F.gelu(mix(norm(h))))
        return self.head(h.mean(dim=1))


def make_data(n, length=128, channels=24):
    x = torch.randn(n, length, channels, device="cuda")
    y = x.mean(dim=(1, 2))[:, None] * torch.linspace(0, 1, 96, device="cuda")
    return x, y


def objective(params, steps=6):
    model = SeriesNet(params["dropout"]).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=params["lr"], weight_decay=params["wd"])
    model.train()
    for _ in range(steps):
        x, y = make_data(96)
        opt.zero_grad(set_to_none=True)
        F.mse_loss(model(x), y).backward()
        opt.step()
    model.eval()
    with torch.inference_mode():
        x, y = make_data(96)
        return F.mse_loss(model(x), y).item()


class Study:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.trials = []
        self.best = None

    def suggest(self):
        return {
            "lr": 10 ** self.rng.uniform(-4.5, -2.5),
            "wd": 10 ** self.rng.uniform(-4, -1),
            "dropout": self.rng.choice([0.1, 0.2, 0.3]),
        }

    def optimize(self, fn, n_trials):
        for number in range(n_trials):
            params = self.suggest()
            value = fn(params)
            self.trials.append({"number": number, "value": value, "params": params})
            if math.isfinite(value) and (self.best is None or value < self.best["value"]):
                self.best = self.trials[-1]
            print(json.dumps(self.trials[-1]))


torch.cuda.memory._record_memory_history(max_entries=200000, stacks="all")
study = Study(seed=8)
study.optimize(objective, n_trials=4)
print("best", study.best)
torch.cuda.memory._dump_snapshot(sys.argv[1])
