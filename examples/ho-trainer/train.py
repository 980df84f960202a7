"""Image classifier driven by the trainer in trainer.py."""
import sys

import torch
from torch import nn
from torchvision.models import resnet18

from trainer import Trainer


def batches(n, size):
    for _ in range(n):
        yield torch.randn(size, 3, 256, 256, device="cuda"), torch.randint(0, 20, (size,), device="cuda")


def report(trainer, state):
    if trainer.global_step % 4 == 0:
        print(trainer.global_step, state.loss.item(), state.accuracy())


def main():
    torch.cuda.memory._record_memory_history(max_entries=200000, stacks="python")
    model = resnet18(num_classes=20).cuda()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4, momentum=0.9)
    Trainer(model, optimizer, nn.CrossEntropyLoss(), [report]).fit(batches(14, 96))
    torch.cuda.memory._dump_snapshot(sys.argv[1])


if __name__ == "__main__":
    main()
