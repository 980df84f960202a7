# %% DP-SGD from scratch with torch.func (course notebook, week 6)
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)
dev = "cuda"

# %% model
model = nn.Sequential(
    nn.Conv2d(1, 32, 5, stride=2), nn.GroupNorm(8, 32), nn.ReLU(),
    nn.Conv2d(32, 64, 3, stride=2), nn.GroupNorm(8, 64), nn.ReLU(),
    nn.Flatten(), nn.Linear(64 * 5 * 5, 512), nn.ReLU(), nn.Linear(512, 10)).to(dev)
params = {k: v.detach().clone() for k, v in model.named_parameters()}

# %% data
X = torch.randn(2560, 1, 28, 28)
Y = torch.randint(0, 10, (2560,))

# %% per-sample gradients
def sample_loss(p, x, y):
    logits = functional_call(model, p, (x[None],))
    return F.cross_entropy(logits, y[None])

per_sample_grad = vmap(grad(sample_loss), in_dims=(None, 0, 0))
CLIP, SIGMA, LR, BATCH = 1.0, 0.8, 0.2, 256

# %% train
torch.cuda.memory._record_memory_history(stacks="python")
for it in range(10):
    x, y = X[it * BATCH:(it + 1) * BATCH].to(dev), Y[it * BATCH:(it + 1) * BATCH].to(dev)
    grads = per_sample_grad(params, x, y)
    norms = torch.stack([torch.linalg.vector_norm(g.flatten(1), dim=1) for g in grads.values()]).norm(dim=0)
    scale = (CLIP / (norms + 1e-6)).clamp(max=1.0)
    for k in params:
        g = torch.einsum("b,b...->...", scale, grads[k])
        g = (g + SIGMA * CLIP * torch.randn_like(g)) / BATCH
        params[k] = params[k] - LR * g
    if it % 5 == 0:
        print(it, norms.median().item())

# %%
torch.cuda.memory._dump_snapshot(sys.argv[1])
