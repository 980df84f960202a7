import torch
from torch import nn


class MixerLayer(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.norm2 = nn.LayerNorm(dim)
        self.token_mlp = nn.Sequential(nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Linear(2 * tokens, tokens))
        self.channel_mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.token_mlp(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel_mlp(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, classes=200, dim=640, depth=10, patch=8, size=64):
        super().__init__()
        self.stem = nn.Conv2d(3, dim, patch, patch)
        self.layers = nn.Sequential(*[MixerLayer((size // patch) ** 2, dim) for _ in range(depth)])
        self.fc = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2)
        return self.fc(self.layers(x).mean(1))


train_x = torch.rand(1000, 3, 64, 64)
train_y = torch.randint(0, 200, (1000,))

model = Mixer().to("cuda")
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def train_batch(i):
    x = train_x[i * 32:(i + 1) * 32].to("cuda")
    y = train_y[i * 32:(i + 1) * 32].to("cuda")
    pred = model(x)
    loss = loss_fn(pred, y)
    loss.backward()
    optimizer.step()
    return loss.item()


for i in range(10):
    print(i, train_batch(i))

torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
print("recorded step:", train_batch(10))
torch.cuda.memory._dump_snapshot("mem_snapshot.pickle")
torch.cuda.memory._record_memory_history(enabled=None)
