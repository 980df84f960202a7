"""A Muon-like optimizer for the matrices, AdamW for the rest."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


def zeropower_via_newtonschulz5(G, steps=5):
    a, b, c = (3.4445, -4.7750, 2.0315)
    X = G.bfloat16()
    if G.size(-2) > G.size(-1):
        X = X.mT
    X = X / (X.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        A = X @ X.mT
        B = b * A + c * A @ A
        X = a * X + B @ X
    return X.mT if G.size(-2) > G.size(-1) else X


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.95):
        super().__init__(params, dict(lr=lr, momentum=momentum))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if len(state) == 0:
                    state["momentum_buffer"] = torch.zeros_like(p.grad)
                state["momentum_buffer"].lerp_(p.grad, 1 - group["momentum"])
                update = zeropower_via_newtonschulz5(p.grad.lerp(state["momentum_buffer"], group["momentum"]))
                p.add_(update.to(p.dtype), alpha=-group["lr"] * max(1, p.size(-2) / p.size(-1)) ** 0.5)


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.qkv, self.o = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.up, self.down = nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(F.rms_norm(x, (C,))).view(B, T, 3, C // 64, 64).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, C))
        return x + self.down(F.relu(self.up(F.rms_norm(x, (C,)))).square())


class GPT(nn.Module):
    def __init__(self, vocab=4096, d=768, layers=6):
        super().__init__()
        self.embed, self.blocks = nn.Embedding(vocab, d), nn.ModuleList(Block(d) for _ in range(layers))
        self.head = nn.Linear(d, vocab, bias=False)

    def forward(self, idx, target):
        x = self.embed(idx)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(F.rms_norm(x, (x.size(-1),))).float().flatten(0, 1), target.flatten())


def main():
    model = GPT().cuda()
    hidden = [p for p in model.blocks.parameters() if p.ndim >= 2]
    optimizers = [torch.optim.AdamW([model.embed.weight, model.head.weight], lr=3e-3, fused=True), Muon(hidden)]
    for step in range(12):
        if step == 4:
            torch.cuda.memory._record_memory_history(max_entries=100000, context=None)
        data = torch.randint(0, 4096, (24, 257), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(data[:, :-1], data[:, 1:])
        loss.backward()
        for opt in optimizers:
            opt.step()
        model.zero_grad(set_to_none=True)
        print(f"step:{step} train_loss:{loss.item():.4f}")
    torch.cuda.memory._dump_snapshot(sys.argv[1])


main()
