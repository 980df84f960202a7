import timeit
import torch
from model import TransformerLM, cross_entropy
from optimizer import AdamW

device = "cuda"
torch.manual_seed(0)

import argparse
from contextlib import nullcontext

parser = argparse.ArgumentParser()
parser.add_argument("--mode", default="forward", choices=["forward", "forward_backward", "full"])
parser.add_argument("--steps", type=int, default=1)
args = parser.parse_args()


def run_step(model, x, targets, optimizer, mode, ctx):
    with torch.cuda.nvtx.range("forward"):
        with ctx:
            logits = model(x)
            if mode != "forward":
                loss = cross_entropy(logits, targets)
    if mode != "forward":
        with torch.cuda.nvtx.range("backward"):
            loss.backward()
    if mode == "full":
        with torch.cuda.nvtx.range("optimizer"):
            optimizer.step()
            optimizer.zero_grad()


model = TransformerLM(10000, 256, 512, 6, 8, 1344).to(device)
optimizer = AdamW(model.parameters())
x = torch.randint(0, 10000, (4, 256), device=device)
with nullcontext():
    for step in range(5):
        run_step(model, x, x, optimizer, args.mode, nullcontext())
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.memory._record_memory_history(max_entries=1_000_000)
    try:
        for step in range(args.steps):
            with torch.cuda.nvtx.range(f"step_{step + 1}"):
                run_step(model, x, x, optimizer, args.mode, nullcontext())
                torch.cuda.synchronize()
    finally:
        torch.cuda.memory._dump_snapshot("memory_snapshot.pickle")
        torch.cuda.memory._record_memory_history(enabled=None)
print(torch.cuda.max_memory_allocated() >> 20)
