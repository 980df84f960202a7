"""Gradual unfreezing: in every epoch one more block of the encoder is trained."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


class Classifier(nn.Module):
    def __init__(self, dim=1024, blocks=4):
        super().__init__()
        self.embed = nn.EmbeddingBag(4000, dim)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim), nn.LayerNorm(dim)) for _ in range(blocks)])
        self.head = nn.Linear(dim, 20)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def main():
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    model = Classifier().cuda()
    model.requires_grad_(False)
    model.head.requires_grad_(True)
    optimizer = torch.optim.AdamW(model.head.parameters(), lr=1e-3)
    for epoch in range(4):
        block = model.blocks[-1 - epoch].requires_grad_(True)
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3 * 0.4**epoch)
        for step in range(4):
            ids, labels = torch.randint(0, 4000, (8192, 40), device="cuda"), torch.randint(0, 20, (8192,), device="cuda")
            optimizer.zero_grad()
            loss = F.cross_entropy(model(ids), labels)
            loss.backward()
            optimizer.step()
            print(epoch, step, loss.item())
    torch.cuda.memory._dump_snapshot(sys.argv[1])


main()
