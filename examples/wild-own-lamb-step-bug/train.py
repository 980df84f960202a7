"""LAMB from the paper, without torch.optim, to learn what it does."""
import sys
import torch
import torch.nn as nn


class MyLamb:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), wd=0.01):
        self.params = [p for p in params if p.requires_grad]
        self.lr, self.betas, self.wd, self.t = lr, betas, wd, 0
        self.m = [torch.zeros_like(p) for p in self.params]
        self.v = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self):
        self.t += 1
        b1, b2 = self.betas
        grads = [p.grad for p in self.params]
        for m, v, g in zip(self.m, self.v, grads):
            m.mul_(b1).add_(g, alpha=1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
        m_hat = [m / (1 - b1 ** self.t) for m in self.m]
        v_hat = [v / (1 - b2 ** self.t) for v in self.v]
        update = [m / (v.sqrt() + 1e-6) for m, v in zip(m_hat, v_hat)]
        update = [u + self.wd * p for u, p in zip(update, self.params)]
        trust = [p.norm() / u.norm().clamp(min=1e-8) for p, u in zip(self.params, update)]
        for p, u, r in zip(self.params, update, trust):
            p.sub_(self.lr * r * u)

    def zero_grad(self):
        for p in self.params:
            p.grad = None


class Bert(nn.Module):
    def __init__(self, vocab=16000, d=768, n=6):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        layer = nn.TransformerEncoderLayer(d, 12, 4 * d, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, n)
        self.out = nn.Linear(d, vocab)

    def forward(self, ids):
        return self.out(self.enc(self.tok(ids)))


def main():
    torch.manual_seed(0)
    model = Bert().cuda()
    optimizer = MyLamb(model.parameters())
    crit = nn.CrossEntropyLoss()
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    for step in range(7):
        ids = torch.randint(0, 16000, (4, 64), device="cuda")
        loss = crit(model(ids).flatten(0, 1), ids.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("loss", loss.item())
    torch.cuda.memory._dump_snapshot(sys.argv[1])


main()
