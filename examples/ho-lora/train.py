"""LoRA written by hand on a small decoder; logs activation norms through hooks."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.pytorch_utils import Conv1D


class LoRAConv1D(nn.Module):
    def __init__(self, base, r=8, alpha=16):
        super().__init__()
        self.base, self.scale = base, alpha / r
        nin, nout = base.weight.shape
        self.A = nn.Parameter(torch.randn(nin, r) * 0.01)
        self.B = nn.Parameter(torch.zeros(r, nout))

    def forward(self, x):
        return self.base(x) + (x @ self.A @ self.B) * self.scale


def inject(model):
    for block in model.transformer.h:
        block.attn.c_attn = LoRAConv1D(block.attn.c_attn)
        block.mlp.c_fc = LoRAConv1D(block.mlp.c_fc)


class ActivationStats:
    def __init__(self, model):
        self.model, self.acts, self.handles = model, {}, []

    def attach(self):
        for i, block in enumerate(self.model.transformer.h):
            self.handles.append(block.mlp.register_forward_hook(self.make(i)))

    def make(self, i):
        acts = {}
        def hook(module, args, output):
            acts[i] = output.detach().float()
            self.acts[i] = acts[i]
        return hook

    def detach(self):
        for handle in self.handles:
            handle.remove()
        self.handles.clear()

    def summary(self):
        return sum(a.float().norm().item() for a in self.acts.values())


def main():
    torch.cuda.memory._record_memory_history(max_entries=100000)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=8192, n_positions=512, n_embd=768, n_layer=6, n_head=12))
    for p in model.parameters():
        p.requires_grad_(False)
    inject(model)
    model.cuda()
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=1e-3)
    stats = ActivationStats(model)
    for step in range(8):
        ids = torch.randint(0, 8192, (12, 512), device="cuda")
        stats.attach()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(step, loss.item(), stats.summary())
        stats.detach()
    torch.cuda.memory._dump_snapshot(sys.argv[1])


main()
