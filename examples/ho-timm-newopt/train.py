"""Train a ConvNeXt with mixup, model EMA and gradient clipping, timm style."""
import sys
from collections import OrderedDict
from contextlib import suppress

import timm
import torch
import torch.nn as nn
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import AverageMeter, ModelEmaV3, NativeScaler, accuracy


class FakeLoader:
    def __init__(self, length, batch_size, classes):
        self.length, self.batch_size, self.classes = length, batch_size, classes

    def __len__(self):
        return self.length

    def __iter__(self):
        for _ in range(self.length):
            yield (torch.rand(self.batch_size, 3, 160, 160, device="cuda"),
                   torch.randint(self.classes, (self.batch_size,), device="cuda"))


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, snapshot_at, lr_scheduler, loss_scaler, model_ema, mixup_fn):
    losses_m = AverageMeter()
    model.train()
    num_updates = epoch * len(loader)
    for batch_idx, (input, target) in enumerate(loader):
        if epoch == 0 and batch_idx == snapshot_at:
            torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
        input, target = mixup_fn(input, target)
        with torch.amp.autocast("cuda", torch.bfloat16):
            output = model(input)
            loss = loss_fn(output, target)
        optimizer.zero_grad()
        loss_scaler(loss, optimizer, clip_grad=1.0, parameters=model.parameters())
        model_ema.update(model, step=num_updates)
        torch.cuda.synchronize()
        num_updates += 1
        losses_m.update(loss.item(), input.size(0))
        lr_scheduler.step_update(num_updates=num_updates, metric=losses_m.avg)
    return OrderedDict([("loss", losses_m.avg)])


@torch.inference_mode()
def validate(model, loader, loss_fn):
    losses_m, top1_m = AverageMeter(), AverageMeter()
    model.eval()
    for batch_idx, (input, target) in enumerate(loader):
        with torch.amp.autocast("cuda", torch.bfloat16):
            output = model(input)
        loss = loss_fn(output, target)
        acc1, acc5 = accuracy(output, target, topk=(1, 5))
        losses_m.update(loss.data.item(), input.size(0))
        top1_m.update(acc1.item(), output.size(0))
    return OrderedDict([("loss", losses_m.avg), ("top1", top1_m.avg)])


def main():
    model = timm.create_model("convnext_tiny", num_classes=100, drop_path_rate=0.1).cuda()
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
    model_ema = ModelEmaV3(model, decay=0.999)
    mixup_fn = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=100)
    scheduler = CosineLRScheduler(optimizer, t_initial=2, t_in_epochs=False)
    loader, loader_eval = FakeLoader(3, 24, 100), FakeLoader(2, 24, 100)
    for epoch in range(4):
        optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3 * 0.5 ** epoch, weight_decay=0.05)
        train_metrics = train_one_epoch(
            epoch, model, loader, optimizer, SoftTargetCrossEntropy().cuda(), 0, scheduler,
            NativeScaler(), model_ema, mixup_fn)
        eval_metrics = validate(model, loader_eval, nn.CrossEntropyLoss().cuda())
        ema_metrics = validate(model_ema.module, loader_eval, nn.CrossEntropyLoss().cuda())
        print(epoch, train_metrics, eval_metrics, ema_metrics)
    torch.cuda.memory._dump_snapshot(sys.argv[1])


if __name__ == "__main__":
    main()
