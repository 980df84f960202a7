"""Fine-tuning with a hand-written Lion optimizer on short sequences."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.optimizer import Optimizer


class Lion(Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            lr, wd, (beta1, beta2) = group["lr"], group["weight_decay"], group["betas"]
            params = [p for p in group["params"] if p.grad is not None]
            for p in params:
                if "exp_avg" not in self.state[p]:
                    self.state[p]["exp_avg"] = torch.zeros_like(p)
            for chunk in [params]:
                grads = [p.grad for p in chunk]
                moments = [self.state[p]["exp_avg"] for p in chunk]
                torch._foreach_mul_(chunk, 1 - lr * wd)
                update = torch._foreach_mul(moments, beta1)
                torch._foreach_add_(update, grads, alpha=1 - beta1)
                torch._foreach_add_(chunk, [u.sign() for u in update], alpha=-lr)
                torch._foreach_lerp_(moments, grads, 1 - beta2)


class Decoder(nn.Module):
    def __init__(self, vocab=16000, dim=1024, layers=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, 16, 4 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(dim, vocab, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1), device=ids.device)
        return self.head(self.blocks(self.embed(ids), mask=mask, is_causal=True))


def main():
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    model = Decoder().cuda()
    optimizer = Lion(model.parameters(), lr=3e-5, weight_decay=0.1)
    for step in range(8):
        ids = torch.randint(0, 16000, (4, 129), device="cuda")
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        del logits
        optimizer.step()
        optimizer.zero_grad()
        print(step, loss.item())
    torch.cuda.memory._dump_snapshot(sys.argv[1])


if __name__ == "__main__":
    main()
