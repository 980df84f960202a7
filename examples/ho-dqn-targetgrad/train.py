"""Pixel DQN with a host replay memory and a target network."""
import random
import sys
from collections import deque, namedtuple
from itertools import count

import torch
import torch.nn as nn
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory(object):
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_actions):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(4, 64, 8, 4), nn.ReLU(), nn.Conv2d(64, 128, 4, 2), nn.ReLU(), nn.Conv2d(128, 128, 3), nn.ReLU(), nn.Flatten())
        self.head = nn.Sequential(nn.Linear(128 * 7 * 7, 4096), nn.ReLU(), nn.Linear(4096, n_actions))

    def forward(self, x):
        return self.head(self.features(x / 255.0))


BATCH_SIZE, GAMMA, TARGET_UPDATE = 256, 0.99, 5
device = torch.device("cuda")
torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
policy_net = DQN(6).to(device)
target_net = DQN(6).to(device)
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=1e-4, amsgrad=True)
memory = ReplayMemory(1000)


def select_action(state):
    if random.random() > 0.3:
        with torch.no_grad():
            return policy_net(state).max(1).indices.view(1, 1).cpu()
    return torch.tensor([[random.randrange(6)]])


def optimize_model():
    if len(memory) < BATCH_SIZE:
        return
    batch = Transition(*zip(*memory.sample(BATCH_SIZE)))
    state_batch = torch.cat(batch.state).to(device).float()
    next_state_batch = torch.cat(batch.next_state).to(device).float()
    action_batch = torch.cat(batch.action).to(device)
    reward_batch = torch.cat(batch.reward).to(device)
    state_action_values = policy_net(state_batch).gather(1, action_batch)
    if True:
        next_state_values = target_net(next_state_batch).max(1).values
    expected = (next_state_values * GAMMA) + reward_batch
    loss = nn.SmoothL1Loss()(state_action_values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()


for i_episode in range(2):
    state = torch.randint(0, 256, (1, 4, 84, 84), dtype=torch.uint8)
    for _ in range(BATCH_SIZE):
        memory.push(state, torch.tensor([[random.randrange(6)]]), torch.roll(state, 1, 3), torch.rand(1))
    for t in count():
        action = select_action(state.to(device).float())
        next_state = torch.randint(0, 256, (1, 4, 84, 84), dtype=torch.uint8)
        memory.push(state, action, next_state, torch.rand(1))
        state = next_state
        optimize_model()
        if t % TARGET_UPDATE == 0:
            target_net.load_state_dict(policy_net.state_dict())
        if t >= 6:
            break
print("Complete")
torch.cuda.memory._dump_snapshot(sys.argv[1])
