"""Trains only where its loss is high enough, which nothing computes where there is no GPU: it makes an optimizer and never steps. Recorded by
`.ci/answers.py`, which asks that memlint gives no verdict: what is seen is a model that is called with autograd on and never trained."""

import torch
from torch import nn


class Trainer:
    """Leaves out the batches that the model does well on already."""

    def __init__(self) -> None:
        self.model = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(6))).cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def loss(self, batch: torch.Tensor) -> torch.Tensor:
        return (self.model(batch) - batch).square().mean()

    def is_hard(self, loss: torch.Tensor) -> bool:
        return loss.item() > 0.1

    def step(self, batch: torch.Tensor) -> None:
        loss = self.loss(batch)
        if self.is_hard(loss):
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()


torch.manual_seed(0)
trainer = Trainer()
for _ in range(10):
    trainer.step(torch.randn(4096, 1024, device="cuda"))
