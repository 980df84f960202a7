import timeit
import torch
from model import scaled_dot_product_attention

device = "cuda"
torch.cuda.memory._record_memory_history(max_entries=1_000_000)
for d in (16, 64):
    for length in (1024, 2048):
        q, k, v = (torch.randn(8, length, d, device=device, requires_grad=True) for _ in range(3))
        start = timeit.default_timer()
        for _ in range(10):
            out = scaled_dot_product_attention(q, k, v)
        torch.cuda.synchronize()
        forward = timeit.default_timer() - start
        before = torch.cuda.memory_allocated()
        start = timeit.default_timer()
        for _ in range(10):
            out = scaled_dot_product_attention(q, k, v)
            out.sum().backward()
        torch.cuda.synchronize()
        print(d, length, forward, timeit.default_timer() - start, before >> 20)
torch.cuda.memory._dump_snapshot("attention.pickle")
