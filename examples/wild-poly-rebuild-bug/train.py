import sys
import torch
import torch.nn as nn
import torch.nn.functional as F

"""Road segmentation, poly learning rate as in the DeepLab paper."""
cfg = dict(base_lr=2.5e-4, power=0.9, iters=14, wd=5e-4)


class FCN(nn.Module):
    def __init__(self, width=192, classes=2):
        super().__init__()
        w = width
        self.d1 = nn.Sequential(nn.Conv2d(3, w // 4, 3, 2, 1), nn.ReLU(), nn.Conv2d(w // 4, w, 3, 2, 1), nn.ReLU())
        self.d2 = nn.Sequential(nn.Conv2d(w, 2 * w, 3, 2, 1), nn.ReLU(), nn.Conv2d(2 * w, 4 * w, 3, 2, 1), nn.ReLU())
        self.d3 = nn.Sequential(nn.Conv2d(4 * w, 4 * w, 3, 1, 2, 2), nn.ReLU(), nn.Conv2d(4 * w, 4 * w, 3, 1, 4, 4), nn.ReLU())
        self.cls = nn.Conv2d(4 * w, classes, 1)

    def forward(self, x):
        y = self.cls(self.d3(self.d2(self.d1(x))))
        return F.interpolate(y, size=x.shape[2:], mode="bilinear", align_corners=False)


def poly(it):
    return cfg["base_lr"] * (1 - it / cfg["iters"]) ** cfg["power"]


def make_optimizer(net, lr):
    decay = [p for p in net.parameters() if p.ndim > 1]
    rest = [p for p in net.parameters() if p.ndim <= 1]
    return torch.optim.Adam([{"params": decay, "weight_decay": cfg["wd"]}, {"params": rest}], lr=lr)


net = FCN().cuda()
torch.cuda.memory._record_memory_history(max_entries=80000, context="alloc")
it = 0
while it < cfg["iters"]:
    optimizer = make_optimizer(net, poly(it))
    img = torch.rand(8, 3, 256, 256, device="cuda")
    lab = torch.randint(0, 2, (8, 256, 256), device="cuda")
    loss = F.cross_entropy(net(img), lab)
    net.zero_grad()
    loss.backward()
    optimizer.step()
    it += 1
    if it % 5 == 0:
        print(it, loss.item(), optimizer.param_groups[0]["lr"])
torch.cuda.memory._dump_snapshot(sys.argv[1])
