import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F

ACCUM = 4


class Encoder(nn.Module):
    def __init__(self, vocab=16000, d=640, n=8):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        layer = nn.TransformerEncoderLayer(d, 10, 4 * d, batch_first=True, norm_first=True, dropout=0.0)
        self.enc = nn.TransformerEncoder(layer, n, enable_nested_tensor=False)
        self.mlm = nn.Linear(d, vocab)

    def forward(self, ids):
        return self.mlm(self.enc(self.emb(ids)))


@contextlib.contextmanager
def memory_snapshot(path, on):
    if on:
        torch.cuda.memory._record_memory_history(max_entries=100000)
    yield
    if on:
        torch.cuda.memory._dump_snapshot(path)
        torch.cuda.memory._record_memory_history(enabled=None)


def micro_batch():
    ids = torch.randint(5, 16000, (8, 192), device="cuda")
    labels = ids.clone()
    hidden = torch.rand(ids.shape, device="cuda") < 0.15
    labels[~hidden] = -100
    return ids.masked_fill(hidden, 4), labels


torch.manual_seed(0)
model = Encoder().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)


def train(start, stop):
    for micro in range(start, stop):
        ids, labels = micro_batch()
        loss = F.cross_entropy(model(ids).flatten(0, 1), labels.flatten()) / ACCUM
        loss.backward()
        if (micro + 1) % ACCUM == 0:
            opt.step()
            opt.zero_grad(set_to_none=True)
            print("optimizer step", (micro + 1) // ACCUM, "loss", loss.item() * ACCUM)


train(0, 10)
with memory_snapshot("accum.pickle", on=True):
    train(10, 12)
