"""Synchronous advantage actor-critic with a GRU; rewards and episode statistics stay on the host."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


class Policy(nn.Module):
    def __init__(self, obs=512, hidden=2048, actions=18):
        super().__init__()
        self.fc, self.gru = nn.Linear(obs, hidden), nn.GRUCell(hidden, hidden)
        self.pi, self.v = nn.Linear(hidden, actions), nn.Linear(hidden, 1)

    def forward(self, obs, h):
        h = self.gru(F.relu(self.fc(obs)), h)
        return self.pi(h), self.v(h).squeeze(-1), h


torch.cuda.memory._record_memory_history(max_entries=100000, context=None)
net = Policy().cuda()
optimizer = torch.optim.RMSprop(net.parameters(), lr=7e-4, eps=1e-5)
envs, horizon, h = 1024, 5, torch.zeros(1024, 2048, device="cuda")
for update in range(12):
    log_probs, values, entropies, rewards = [], [], [], []
    for t in range(horizon):
        logits, value, h = net(torch.randn(envs, 512, device="cuda"), h)
        dist = torch.distributions.Categorical(logits=logits)
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        values.append(value)
        entropies.append(dist.entropy())
        rewards.append(torch.rand(envs))
    h = h.detach()
    with torch.no_grad():
        ret = net(torch.randn(envs, 512, device="cuda"), h)[1]
    returns = []
    for r in reversed(rewards):
        ret = r.cuda() + 0.99 * ret
        returns.insert(0, ret)
    advantage = torch.stack(returns) - torch.stack(values)
    loss = -(torch.stack(log_probs) * advantage.detach()).mean() + 0.5 * advantage.pow(2).mean() - 0.01 * torch.stack(entropies).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    optimizer.step()
    print(update, loss.item())
torch.cuda.memory._dump_snapshot(sys.argv[1])
