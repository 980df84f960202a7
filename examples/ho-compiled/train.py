"""MLP-mixer-like regressor with torch.compile(mode="reduce-overhead")."""
import sys

import torch
import torch.nn as nn


class MixBlock(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.tok = nn.Sequential(nn.Linear(tokens, tokens * 2), nn.GELU(), nn.Linear(tokens * 2, tokens))
        self.chan = nn.Sequential(nn.Linear(dim, dim * 4), nn.GELU(), nn.Linear(dim * 4, dim))

    def forward(self, x):
        x = x + self.tok(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.chan(self.n2(x))


class Net(nn.Module):
    def __init__(self, tokens=64, dim=512, depth=3):
        super().__init__()
        self.blocks = nn.Sequential(*[MixBlock(tokens, dim) for _ in range(depth)])
        self.out = nn.Linear(dim, 1)

    def forward(self, x):
        return self.out(self.blocks(x).mean(1)).squeeze(-1)


def main():
    torch.set_float32_matmul_precision("high")
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    model = Net().cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    step_fn = torch.compile(model, mode="reduce-overhead")
    for it in range(12):
        x = torch.randn(128, 64, 512, device="cuda")
        torch.compiler.cudagraph_mark_step_begin()
        loss = nn.functional.mse_loss(step_fn(x), x.mean((1, 2)))
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        print(it, loss.item())
    torch.cuda.memory._dump_snapshot(sys.argv[1])


if __name__ == "__main__":
    main()
