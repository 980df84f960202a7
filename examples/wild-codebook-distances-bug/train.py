"""Fits a coarse quantiser on the GPU, then serves queries with it."""
import sys
import torch


def assign(x, c):
    d = torch.cdist(x, c)
    return d.argmin(1)


def kmeans(x, k, iters=5):
    c = x[torch.randperm(len(x), device=x.device)[:k]].clone()
    for _ in range(iters):
        a = assign(x, c)
        total = torch.zeros_like(c).index_add_(0, a, x)
        count = torch.bincount(a, minlength=k).clamp_min(1).unsqueeze(1)
        c = total / count
    return c


class Router:
    def __init__(self, centroids, nprobe=8):
        self.c, self.nprobe = centroids, nprobe
        self.half_norm = centroids.square().sum(1) / 2

    def __call__(self, q):
        return (q @ self.c.T - self.half_norm).topk(self.nprobe, dim=1).indices.cpu()


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    torch.cuda.memory._record_memory_history(max_entries=50000)
    x = torch.randn(120_000, 768, device="cuda")
    router = Router(kmeans(x, 6144))
    del x
    torch.cuda.empty_cache()          # give the training memory back before serving
    for batch in range(12):
        router(torch.randn(512, 768, device="cuda"))
    torch.cuda.memory._dump_snapshot(sys.argv[1])
    print(f"{torch.cuda.memory_allocated() >> 20} MiB used, {torch.cuda.memory_reserved() >> 20} MiB reserved")


main()
