from collections import namedtuple

import torch
import torch.nn as nn

Output = namedtuple("Output", "logits attentions")


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.ff = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))
        self.n, self.h = nn.LayerNorm(d), h

    def forward(self, x):
        b, t, d = x.shape
        y = self.n(x)
        q, k, v = (f(y).view(b, t, self.h, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        w = (q @ k.transpose(-1, -2) / (d // self.h) ** 0.5).softmax(-1)
        x = x + self.o((w @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.ff(x), w


class Probe(nn.Module):
    def __init__(self, vocab=5000, d=512, n=6, h=8):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.blocks = nn.ModuleList([Block(d, h) for _ in range(n)])
        self.out = nn.Linear(d, 2)

    def forward(self, ids):
        x, maps = self.emb(ids), []
        for block in self.blocks:
            x, w = block(x)
            maps.append(w)
        return Output(self.out(x.mean(1)), tuple(maps))


def main():
    torch.manual_seed(0)
    net = Probe().cuda()
    opt = torch.optim.Adam(net.parameters(), lr=1e-4)
    for step in range(4):
        if step == 3:
            torch.cuda.memory._record_memory_history(max_entries=100000)
        ids, label = torch.randint(0, 5000, (8, 512), device="cuda"), torch.randint(0, 2, (8,), device="cuda")
        opt.zero_grad(set_to_none=True)
        out = net(ids)
        loss = nn.functional.cross_entropy(out.logits, label)
        loss.backward()
        opt.step()
        with torch.no_grad():
            maps = [w.detach() for w in out.attentions]
            print(step, loss.item(), [round(m[0, 0].diagonal().mean().item(), 4) for m in maps])
    torch.cuda.memory._dump_snapshot("probe_step3.pickle")


main()
