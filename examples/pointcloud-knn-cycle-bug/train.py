"""Part segmentation with edge convolutions. Python's collector is run at fixed steps only (it used to stall the loop)."""
import gc
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

from clouds import CloudBatch


class StepGC:
    def __init__(self, every):
        self.every = every
        gc.disable()
        gc.collect()

    def __call__(self, step):
        if step % self.every == 0:
            gc.collect()


class EdgeNet(nn.Module):
    def __init__(self, parts=24, dim=48):
        super().__init__()
        self.lift = nn.Linear(48, dim)
        self.mix = nn.Linear(dim, dim)
        self.point = nn.Sequential(nn.Linear(dim, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        self.head = nn.Linear(256, parts)

    def forward(self, cloud):
        e = F.relu(self.lift(cloud.edge))
        e = self.mix(e).amax(dim=2)
        return self.head(self.point(e))


class SegmentationTask:
    def __init__(self, batch=24, points=1024, parts=24):
        self.batch, self.points, self.parts = batch, points, parts
        self.net = EdgeNet(parts).cuda()
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=1e-3)

    def sample(self):
        xyz = torch.rand(self.batch, self.points, 3, device="cuda") * 2 - 1
        label = (xyz.norm(dim=-1) * 10).long().clamp_(max=self.parts - 1)
        return CloudBatch(xyz, label)

    def step(self):
        cloud = self.sample()
        out = self.net(cloud)
        loss = F.cross_entropy(out.flatten(0, 1), cloud.label.flatten())
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


def run(out_file):
    torch.manual_seed(0)
    task = SegmentationTask()
    collect = StepGC(every=6)
    torch.cuda.memory._record_memory_history(max_entries=60000, stacks="python")
    for step in range(1, 21):
        value = task.step()
        collect(step)
        if step % 4 == 0:
            print(step, round(value, 4), torch.cuda.memory_allocated() >> 20, "MiB")
    torch.cuda.memory._dump_snapshot(out_file)


if __name__ == "__main__":
    run(sys.argv[1])
