"""Faster R-CNN fine-tuning on images of many sizes."""
import math
import random
import sys

import torch
import torchvision


def collate_fn(batch):
    return tuple(zip(*batch))


class Shapes(torch.utils.data.Dataset):
    def __init__(self, n):
        rng = random.Random(3)
        self.sizes = [(rng.randrange(300, 900), rng.randrange(300, 900)) for _ in range(n)]

    def __len__(self):
        return len(self.sizes)

    def __getitem__(self, i):
        h, w = self.sizes[i]
        xy = torch.rand(5, 2) * torch.tensor([w, h]) * 0.5
        boxes = torch.cat([xy, xy + 40 + torch.rand(5, 2) * 80], 1)
        return torch.rand(3, h, w), {"boxes": boxes, "labels": torch.randint(1, 10, (5,))}


def train_one_epoch(model, optimizer, data_loader, device, epoch):
    model.train()
    for step, (images, targets) in enumerate(data_loader):
        images = list(image.to(device) for image in images)
        targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
        loss_dict = model(images, targets)
        losses = sum(loss for loss in loss_dict.values())
        loss_value = losses.item()
        if not math.isfinite(loss_value):
            print(f"Loss is {loss_value}, stopping training")
            sys.exit(1)
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        print(epoch, step, round(loss_value, 3))


def main():
    model = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_fpn(
        weights=None, weights_backbone=None, num_classes=10, min_size=480, max_size=1000).to("cuda")
    loader = torch.utils.data.DataLoader(Shapes(32), batch_size=4, collate_fn=collate_fn)
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(params, lr=0.001, momentum=0.9, weight_decay=5e-4)
    for epoch in range(1):
        train_one_epoch(model, optimizer, loader, torch.device("cuda"), epoch)
    torch.cuda.memory._dump_snapshot(sys.argv[1])


if __name__ == "__main__":
    main()
