import timeit
import torch
from model import TransformerLM, cross_entropy
from optimizer import AdamW

device = "cuda"
torch.manual_seed(0)

from contextlib import nullcontext


def model_pass(model, x, only_forward=True, y=None, optimizer=None):
    if not only_forward:
        model.zero_grad(set_to_none=True)
    torch.cuda.nvtx.range_push("forward")
    out = model(x)
    torch.cuda.nvtx.range_pop()
    if only_forward:
        torch.cuda.synchronize()
        return
    loss = cross_entropy(out.flatten(0, 1), y.flatten(0, 1))
    torch.cuda.nvtx.range_push("backward")
    loss.backward()
    torch.cuda.synchronize()
    torch.cuda.nvtx.range_pop()
    if optimizer is not None:
        optimizer.step()


torch.cuda.memory._record_memory_history(max_entries=1000000)
model = TransformerLM(10000, 256, 512, 6, 8, 1344).to(device)
optimizer = AdamW(model.parameters())
x = torch.randint(0, 10000, (4, 256), device=device)
y = torch.randint(0, 10000, (4, 256), device=device)
with torch.autocast("cuda", dtype=torch.bfloat16):
    for _ in range(6):
        model_pass(model, x, only_forward=False, y=y)
torch.cuda.memory._dump_snapshot("memory_snapshot.pickle")
torch.cuda.memory._record_memory_history(enabled=None)
