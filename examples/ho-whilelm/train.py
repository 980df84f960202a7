"""Decoder-only LM; the loop counts steps and restarts the iterator when it runs dry."""
import copy
import os
import sys

os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader


class LM(nn.Module):
    def __init__(self, vocab=8192, d=1024, layers=4, heads=16, ctx=256):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Parameter(torch.zeros(ctx, d))
        layer = nn.TransformerEncoderLayer(d, heads, 4 * d, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(d, vocab, bias=False)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1), device=x.device)
        return self.head(self.blocks(self.tok(x) + self.pos[:x.size(1)], mask=mask, is_causal=True))


def cycle_next(it, loader):
    try:
        return it, next(it)
    except StopIteration:
        it = iter(loader)
        return it, next(it)


@torch.no_grad()
def validate(model):
    x = torch.randint(0, 8192, (8, 257), device="cuda")
    model.eval()
    loss = F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten()).item()
    model.train()
    return loss


if __name__ == "__main__":
    torch.cuda.memory._record_memory_history(max_entries=100000)
    model = LM().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    loader = DataLoader(torch.randint(0, 8192, (8 * 4, 257)), batch_size=8, shuffle=True)
    it, step, max_steps, best, best_state = iter(loader), 0, 10, float("inf"), None
    while step < max_steps:
        it, batch = cycle_next(it, loader)
        batch = batch.to("cuda", non_blocking=True)
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        if step % 3 == 0:
            val = validate(model)
            if val < best:
                best, best_state = val, {k: v.cpu() for k, v in model.state_dict().items()}
            print(step, loss.item(), val)
    torch.cuda.memory._dump_snapshot(sys.argv[1])
