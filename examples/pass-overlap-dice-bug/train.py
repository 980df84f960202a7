import torch
import torch.nn as nn
import torch.nn.functional as F

NUM_CLASSES = 40


def double_conv(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, base=12):
        super().__init__()
        self.d1, self.d2, self.d3 = double_conv(1, base), double_conv(base, 2 * base), double_conv(2 * base, 4 * base)
        self.mid = double_conv(4 * base, 8 * base)
        self.u3, self.u2, self.u1 = double_conv(12 * base, 4 * base), double_conv(6 * base, 2 * base), double_conv(3 * base, base)
        self.out = nn.Conv2d(base, NUM_CLASSES, 1)

    def forward(self, x):
        c1 = self.d1(x)
        c2 = self.d2(F.max_pool2d(c1, 2))
        c3 = self.d3(F.max_pool2d(c2, 2))
        m = self.mid(F.max_pool2d(c3, 2))
        x = self.u3(torch.cat([F.interpolate(m, scale_factor=2), c3], 1))
        x = self.u2(torch.cat([F.interpolate(x, scale_factor=2), c2], 1))
        x = self.u1(torch.cat([F.interpolate(x, scale_factor=2), c1], 1))
        return self.out(x)


def batches():
    g = torch.Generator().manual_seed(0)
    while True:
        yield torch.rand(8, 1, 320, 320, generator=g), torch.randint(0, NUM_CLASSES, (8, 320, 320), generator=g)


net = UNet().cuda()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
running_dice = 0.0
for it, (image, mask) in enumerate(batches()):
    if it == 4:
        torch.cuda.memory._record_memory_history()
    image, mask = image.cuda(), mask.cuda()
    opt.zero_grad()
    logits = net(image)
    loss = F.cross_entropy(logits, mask)
    loss.backward()
    opt.step()

    with torch.no_grad():
        probs = logits.softmax(1)
        onehot = F.one_hot(mask, NUM_CLASSES).permute(0, 3, 1, 2).float()
        inter = torch.einsum("bchw,bchw->c", probs, onehot)
        dice = 2 * inter / (probs.sum((0, 2, 3)) + onehot.sum((0, 2, 3)) + 1e-6)
        running_dice += dice.mean().item()
    print(it, loss.item(), running_dice / (it + 1))
    if it == 4:
        torch.cuda.memory._dump_snapshot("unet_iter4.pickle")
        break
