import dataclasses

import torch
from torch import nn


@dataclasses.dataclass
class TrainConfig:
    lr: float = 2e-4
    steps: int = 6
    profile_step: int = 5
    out: str = "ranker_step.pickle"


class CrossEncoder(nn.Module):
    def __init__(self, vocab=24000, d=768, n=8):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(d, 12, 3072, dropout=0.0, batch_first=True, norm_first=True, activation="gelu") for _ in range(n)])
        self.score = nn.Linear(d, 1)

    def forward(self, pair):
        h = self.emb(pair)
        for layer in self.layers:
            h = layer(h)
        return self.score(h[:, 0]).squeeze(-1)


class Trainer:
    def __init__(self, model, cfg):
        self.model, self.cfg = model, cfg
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, fused=True)

    def _forward(self, pos, neg):
        return nn.functional.margin_ranking_loss(self.model(pos), self.model(neg), torch.ones(len(pos), device="cuda"), margin=1.0)

    def _backward(self, loss):
        self.model.zero_grad()
        loss.backward()

    def _step(self, batch):
        loss = self._forward(*batch)
        self._backward(loss)
        self.optimizer.step()
        return loss.item()

    def run(self, data):
        for i in range(self.cfg.steps):
            batch = next(data)
            if i == self.cfg.profile_step:
                torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
            loss = self._step(batch)
            if i == self.cfg.profile_step:
                torch.cuda.memory._dump_snapshot(self.cfg.out)
                torch.cuda.memory._record_memory_history(enabled=None)
            print(i, loss)


def pairs():
    while True:
        yield tuple(torch.randint(0, 24000, (4, 160), device="cuda") for _ in range(2))


if __name__ == "__main__":
    torch.manual_seed(0)
    Trainer(CrossEncoder().cuda(), TrainConfig()).run(pairs())
