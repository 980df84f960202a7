import torch
import torch.nn as nn
from torchmetrics.classification import BinaryAveragePrecision
from torchmetrics.wrappers import BootStrapper

DEVICE = "cuda"


class LesionNet(nn.Module):
    def __init__(self, c=32):
        super().__init__()
        self.f = nn.Sequential(nn.Conv2d(1, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, 1, 1))

    def forward(self, x):
        return self.f(x).sigmoid().squeeze(1)


def volumes(n, b=8, s=128):
    for _ in range(n):
        yield torch.rand(b, 1, s, s), (torch.rand(b, s, s) > 0.97).long()


def build_metric():
    ap = BinaryAveragePrecision(thresholds=None, validate_args=False)
    return BootStrapper(ap, num_bootstraps=20, quantile=torch.tensor([0.025, 0.975]), sampling_strategy="multinomial").to(DEVICE)


def main():
    torch.cuda.memory._record_memory_history(max_entries=200000, stacks="python")
    net = LesionNet().to(DEVICE).eval()
    metric = build_metric()
    with torch.no_grad():
        for image, mask in volumes(16):
            score = net(image.to(DEVICE))
            metric.update(score.flatten(), mask.to(DEVICE).flatten())
    torch.cuda.synchronize()
    torch.cuda.memory._dump_snapshot("bootstrap.pickle")


main()
