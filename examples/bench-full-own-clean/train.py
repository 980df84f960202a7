import timeit
import torch
from model import TransformerLM, cross_entropy
from optimizer import AdamW

device = "cuda"
torch.manual_seed(0)
from contextlib import nullcontext
model = TransformerLM(10000, 256, 512, 6, 8, 1344).to(device)
optimizer = AdamW(model.parameters())
data = torch.randint(0, 10000, (4, 256), device=device)
targets = torch.randint(0, 10000, (4, 256), device=device)
ctx = nullcontext()
for _ in range(3):
    with ctx:
        logits = model(data)
        loss = cross_entropy(logits.float().flatten(0, 1), targets.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
torch.cuda.memory._record_memory_history(max_entries=1_000_000)
start = timeit.default_timer()
for _ in range(3):
    with ctx:
        logits = model(data)
        loss = cross_entropy(logits.float().flatten(0, 1), targets.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
print("seconds a step:", (timeit.default_timer() - start) / 3)
torch.cuda.memory._dump_snapshot("memory_snapshot.pickle")
torch.cuda.memory._record_memory_history(enabled=None)
