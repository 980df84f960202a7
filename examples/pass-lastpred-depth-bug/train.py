import sys
import torch
import torch.nn as nn
import torch.nn.functional as F


def conv(i, o, s=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1), nn.ELU(inplace=True))


class DepthNet(nn.Module):
    def __init__(self, w=24):
        super().__init__()
        self.enc = nn.ModuleList([conv(3, w), conv(w, 2 * w, 2), conv(2 * w, 4 * w, 2), conv(4 * w, 8 * w, 2)])
        self.dec = nn.ModuleList([conv(8 * w, 4 * w), conv(4 * w, 2 * w), conv(2 * w, w)])
        self.heads = nn.ModuleList([nn.Conv2d(c, 1, 3, 1, 1) for c in (4 * w, 2 * w, w)])

    def forward(self, x):
        skips = []
        for e in self.enc:
            x = e(x)
            skips.append(x)
        feats, disps = [], []
        for d, h, s in zip(self.dec, self.heads, reversed(skips[:-1])):
            x = F.interpolate(d(x), scale_factor=2.0, mode="nearest") + s
            feats.append(x)
            disps.append(F.interpolate(torch.sigmoid(h(x)), size=(256, 512)))
        return {"feats": feats, "disps": disps, "skips": skips}


class Trainer:
    def __init__(self, log_every=100):
        self.net = DepthNet().cuda()
        self.opt = torch.optim.Adam(self.net.parameters(), 1e-4)
        self.log_every = log_every
        self.step = 0
        self.last = None

    def photometric(self, out, left, right):
        return sum((F.grid_sample(right, self.grid(d), align_corners=False) - left).abs().mean() for d in out["disps"])

    def grid(self, disp):
        b, _, h, w = disp.shape
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, h, device=disp.device), torch.linspace(-1, 1, w, device=disp.device), indexing="ij")
        return torch.stack([xs + disp[:, 0], ys.expand(b, h, w)], -1)

    def train_step(self, left, right):
        out = self.net(left)
        loss = self.photometric(out, left, right)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.last = {"left": left, "right": right, **out}
        if self.step % self.log_every == 0:
            self.write_images()
        self.step += 1

    def write_images(self):
        d = self.last["disps"][-1][0]
        print("image summary", tuple(d.shape))


t = Trainer()
for k in range(4):
    t.train_step(torch.rand(4, 3, 256, 512).cuda(), torch.rand(4, 3, 256, 512).cuda())
torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
t.train_step(torch.rand(4, 3, 256, 512).cuda(), torch.rand(4, 3, 256, 512).cuda())
torch.cuda.memory._dump_snapshot(sys.argv[1] if len(sys.argv) > 1 else "depth.pickle")
