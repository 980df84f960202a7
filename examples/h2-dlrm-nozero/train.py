"""DLRM: sparse embedding bags under SparseAdam, dense towers under Adagrad."""
import argparse
import sys

import torch
import torch.nn as nn


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class DLRM(nn.Module):
    def __init__(self, tables=4, rows=400_000, dim=64):
        super().__init__()
        self.emb = nn.ModuleList([nn.EmbeddingBag(rows, dim, mode="sum", sparse=True) for _ in range(tables)])
        self.bot, self.top = mlp(13, 512, 256, dim), mlp(dim + (tables + 1) * tables // 2, 1024, 512, 1)

    def forward(self, dense, sparse):
        x = self.bot(dense)
        cat = torch.stack([x] + [e(s) for e, s in zip(self.emb, sparse)], 1)
        inter = torch.bmm(cat, cat.transpose(1, 2))
        i, j = torch.tril_indices(cat.size(1), cat.size(1), -1, device=x.device)
        return self.top(torch.cat([x, inter[:, i, j]], 1)).squeeze(1)


parser = argparse.ArgumentParser()
parser.add_argument("snapshot")
parser.add_argument("--batch-size", type=int, default=8192)
parser.add_argument("--steps", type=int, default=12)
args = parser.parse_args()

torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
model = DLRM().cuda()
sparse_optimizer = torch.optim.SparseAdam(list(model.emb.parameters()), lr=1e-3)
dense_optimizer = torch.optim.Adagrad(list(model.bot.parameters()) + list(model.top.parameters()), lr=1e-2)
loss_fn = nn.BCEWithLogitsLoss()
for it in range(args.steps):
    dense = torch.rand(args.batch_size, 13, device="cuda")
    sparse = torch.randint(0, 400_000, (4, args.batch_size, 10), device="cuda")
    click = torch.rand(args.batch_size, device="cuda").round()
    loss = loss_fn(model(dense, sparse), click)
    dense_optimizer.zero_grad()
    loss.backward()
    dense_optimizer.step()
    sparse_optimizer.step()
    print(f"it {it} loss {loss.item():.4f}")
torch.cuda.memory._dump_snapshot(args.snapshot)
