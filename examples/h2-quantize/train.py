"""Converts one checkpoint to int8 and checks one batch against the original."""
import sys

import torch
import torch.nn as nn
from torchvision.models import vit_b_32


class Int8Linear(nn.Module):
    def __init__(self, linear):
        super().__init__()
        scale = linear.weight.abs().amax(1, keepdim=True) / 127
        self.register_buffer("weight", (linear.weight / scale).round().to(torch.int8))
        self.register_buffer("scale", scale)
        self.bias = linear.bias

    def forward(self, x):
        return nn.functional.linear(x, self.weight.to(x.dtype) * self.scale, self.bias)


@torch.no_grad()
def quantize(module):
    for name, child in module.named_children():
        if type(child) is nn.Linear:
            setattr(module, name, Int8Linear(child))
        else:
            quantize(child)


torch.cuda.memory._record_memory_history(max_entries=100000)
model = vit_b_32().cuda().eval()
images = torch.rand(32, 3, 224, 224, device="cuda")
with torch.no_grad():
    reference = model(images)
    quantize(model)
    print((model(images) - reference).abs().max().item(), torch.cuda.memory_allocated() >> 20, "MiB")
torch.cuda.memory._dump_snapshot(sys.argv[1])
