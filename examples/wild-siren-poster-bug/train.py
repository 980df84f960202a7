# %% [markdown]
# # Fit a SIREN to one picture, then print it as a poster
# %%
import sys
import torch
from torch import nn

device = torch.device("cuda")

# %%
class Sine(nn.Module):
    def __init__(self, i, o, w0=30.0, first=False):
        super().__init__()
        self.w0 = w0
        self.lin = nn.Linear(i, o)
        bound = 1 / i if first else (6 / i) ** 0.5 / w0
        nn.init.uniform_(self.lin.weight, -bound, bound)

    def forward(self, x):
        return torch.sin(self.w0 * self.lin(x))


net = nn.Sequential(Sine(2, 128, first=True), Sine(128, 128), Sine(128, 128), Sine(128, 128), nn.Linear(128, 3)).to(device)

# %% the picture (a made-up one)
def picture(xy):
    r = xy.norm(dim=-1, keepdim=True)
    return torch.cat([torch.sin(20 * r), torch.cos(9 * xy[..., :1]), (xy[..., :1] * xy[..., 1:])], -1)

# %% fit
opt = torch.optim.Adam(net.parameters(), lr=1e-4)
for it in range(50):
    xy = torch.rand(8192, 2, device=device) * 2 - 1
    err = (net(xy) - picture(xy)).pow(2).mean()
    opt.zero_grad()
    err.backward()
    opt.step()
print("fit", err.item())

# %% render, strip by strip because the whole poster does not fit
torch.cuda.memory._record_memory_history(max_entries=200000)
W, H, STRIP = 1024, 768, 64
poster = torch.zeros(H, W, 3)
xs = torch.linspace(-1, 1, W, device=device)
net.eval()
for top in range(0, H, STRIP):
    ys = torch.linspace(-1 + 2 * top / H, -1 + 2 * (top + STRIP) / H, STRIP, device=device)
    grid = torch.stack(torch.meshgrid(xs, ys, indexing="xy"), -1)
    poster[top:top + STRIP] = net(grid).cpu()
    print("rows", top, "to", top + STRIP, end="\r")

# %%
image = ((poster.detach().clamp(-1, 1) + 1) * 127.5).byte().numpy()
print(image.shape, image.mean())
torch.cuda.memory._dump_snapshot(sys.argv[1])
