import sys
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net3D(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.a = nn.Conv3d(1, c, 3, padding=1)
        self.b = nn.Conv3d(c, 2 * c, 3, stride=2, padding=1)
        self.c = nn.Conv3d(2 * c, 2 * c, 3, padding=1)
        self.up = nn.ConvTranspose3d(2 * c, c, 2, stride=2)
        self.out = nn.Conv3d(2 * c, 3, 1)

    def forward(self, x):
        a = F.relu(self.a(x))
        b = F.relu(self.c(F.relu(self.b(a))))
        return self.out(torch.cat([a, F.relu(self.up(b))], 1))


def slices(volume, spacing):
    """Resample a scan to isotropic voxels and walk through it from the middle outwards."""
    iso = F.interpolate(volume[None, None], scale_factor=spacing, mode="trilinear", align_corners=False)[0, 0]
    order = sorted(range(iso.shape[0]), key=lambda k: abs(k - iso.shape[0] // 2))
    for k in order:
        yield k, iso[k]


class Gallery:
    """Preview pictures for the report; more slices of a case can be asked for afterwards."""

    def __init__(self):
        self.cursor = {}
        self.pictures = []

    def show(self, case, volume, spacing=(2.0, 1.0, 1.0)):
        walk = slices(volume, spacing)
        k, img = next(walk)
        self.cursor[case] = walk
        self.pictures.append((case, k, img.mul(255).clamp(0, 255).byte().cpu()))

    def more(self, case):
        k, img = next(self.cursor[case])
        self.pictures.append((case, k, img.mul(255).clamp(0, 255).byte().cpu()))


def scan(i):
    g = torch.Generator().manual_seed(i)
    return torch.rand(96, 256, 256, generator=g).cuda(non_blocking=True)


def crop(volume, label, size=64, n=4):
    xs, ys = [], []
    for _ in range(n):
        z, y, x = (int(torch.randint(0, s - size + 1, ())) for s in volume.shape)
        sl = (slice(z, z + size), slice(y, y + size), slice(x, x + size))
        xs.append(volume[sl]); ys.append(label[sl])
    return torch.stack(xs)[:, None], torch.stack(ys)


def main(path):
    torch.manual_seed(0)
    net = Net3D().cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    torch.cuda.memory._record_memory_history(stacks="python")
    gallery = Gallery()
    try:
        for case in range(16):
            volume = scan(case)
            label = (volume * 3).long()
            x, y = crop(volume, label)
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            gallery.show(f"case{case:03d}", volume)
            print(case, round(loss.item(), 4))
        gallery.more("case003")
    finally:
        torch.cuda.memory._dump_snapshot(path)


main(sys.argv[1])
