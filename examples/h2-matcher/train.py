"""One-stage detector: anchors are matched to the ground truth by their IoU, then focal and L1 losses."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


def box_iou(a, b):
    area_a, area_b = ((x[:, 2] - x[:, 0]) * (x[:, 3] - x[:, 1]) for x in (a, b))
    lt = torch.max(a[:, None, :2], b[None, :, :2])
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    return inter / (area_a[:, None] + area_b - inter)


class Detector(nn.Module):
    def __init__(self, w=64, anchors=9, classes=20):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, w, 7, 4, 3), nn.ReLU(), nn.Conv2d(w, 2 * w, 3, 2, 1), nn.ReLU(), nn.Conv2d(2 * w, 2 * w, 3, padding=1), nn.ReLU())
        self.cls, self.reg, self.classes = nn.Conv2d(2 * w, anchors * classes, 3, padding=1), nn.Conv2d(2 * w, anchors * 4, 3, padding=1), classes

    def forward(self, x):
        f = self.body(x)
        n = len(x)
        return self.cls(f).permute(0, 2, 3, 1).reshape(n, -1, self.classes), self.reg(f).permute(0, 2, 3, 1).reshape(n, -1, 4)


@torch.no_grad()
def assign(anchors, boxes):
    iou, index = box_iou(anchors, boxes).max(1)
    return iou > 0.5, index


def random_boxes(n, size):
    xy = torch.rand(n, 2, device="cuda") * size * 0.9
    return torch.cat([xy, xy + torch.rand(n, 2, device="cuda") * size * 0.1 + 4], 1)


torch.manual_seed(0)
torch.cuda.memory._record_memory_history(max_entries=100000)
model, size = Detector().cuda(), 768
anchors = random_boxes(9 * 96 * 96, size)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
for step in range(8):
    images = torch.rand(4, 3, size, size, device="cuda")
    logits, deltas = model(images)
    total = 0
    for i in range(4):
        boxes, labels = random_boxes(300, size), torch.randint(0, 20, (300,), device="cuda")
        positive, index = assign(anchors, boxes)
        target = F.one_hot(labels[index], 20).float() * positive[:, None]
        total = total + F.binary_cross_entropy_with_logits(logits[i], target)
        total = total + F.l1_loss(deltas[i][positive], boxes[index[positive]] - anchors[positive])
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    print(step, total.item())
torch.cuda.memory._dump_snapshot(sys.argv[1])
