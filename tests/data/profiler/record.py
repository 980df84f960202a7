"""Records the timelines of this folder: eight steps of AdamW under torch.profiler (PyTorch 2.11, CUDA 13.0, H200).

python3 record.py OUT    writes leak.*, whole.* and steps.* into the folder OUT (the traces here are an H100's)
"""

import sys

import torch
from torch.profiler import ProfilerActivity, profile, schedule

DEVICE = "cuda"


def record(name, leak=False, scheduled=False):
    torch.manual_seed(0)
    keep = []
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.ReLU(),
        torch.nn.Linear(512, 512), torch.nn.ReLU(),
        torch.nn.Linear(512, 10),
    ).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    options = {"schedule": schedule(wait=0, warmup=2, active=6, repeat=1)} if scheduled else {}
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=activities, record_shapes=True, profile_memory=True, with_stack=True, **options) as profiler:
        for _ in range(8):
            x = torch.randn(64, 256, device=DEVICE)
            y = torch.randint(0, 10, (64,), device=DEVICE)
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
            if leak:
                keep.append(torch.randn(128, 1024, device=DEVICE))  # 512 KiB a step
            if scheduled:
                profiler.step()
    for ending in ("raw.json.gz", "json.gz"):
        profiler.export_memory_timeline(f"{sys.argv[1]}/{name}.{ending}", device="cuda:0")
    profiler.export_memory_timeline(f"{sys.argv[1]}/{name}-cpu.raw.json.gz", device="cpu")
    profiler.export_chrome_trace(f"{sys.argv[1]}/{name}.trace.json.gz")


record("whole")
record("leak", leak=True)
record("steps", scheduled=True)
