import torch
from torch import nn


class MyAdam:
    """Adam, as in the paper; keeps the last update norms for plots"""

    def __init__(self, params, lr=1e-3, b1=0.9, b2=0.999, eps=1e-8):
        self.params = [p for p in params if p.requires_grad]
        self.lr, self.b1, self.b2, self.eps = lr, b1, b2, eps
        self.t = 0
        self.m = self.v = None
        self.norms = []

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self):
        if self.m is None:
            self.m = [torch.zeros_like(p) for p in self.params]
            self.v = [torch.zeros_like(p) for p in self.params]
        self.t += 1
        for p, m, v in zip(self.params, self.m, self.v):
            m.mul_(self.b1).add_(p.grad, alpha=1 - self.b1)
            v.mul_(self.b2).addcmul_(p.grad, p.grad, value=1 - self.b2)
            upd = (m / (1 - self.b1**self.t)) / ((v / (1 - self.b2**self.t)).sqrt() + self.eps)
            p.sub_(upd, alpha=self.lr)
        self.norms.append(upd.norm().item())


class Learner:
    def __init__(self, tasks):
        w = 2816
        self.trunk = nn.Sequential(nn.Linear(3072, w), nn.ReLU(), nn.Linear(w, w), nn.ReLU(), nn.Linear(w, w), nn.ReLU()).cuda()
        self.heads = nn.ModuleList([nn.Linear(w, 10) for _ in range(tasks)]).cuda()
        self.optimizers = []

    def learn(self, task, loader):
        opt = MyAdam(list(self.trunk.parameters()) + list(self.heads[task].parameters()))
        self.optimizers.append(opt)
        for x, y in loader:
            loss = nn.functional.cross_entropy(self.heads[task](self.trunk(x.cuda().flatten(1))), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
        print("task", task, loss.item())

    def plot(self):
        return [o.norms for o in self.optimizers]


def task_data(n=3):
    return [(torch.rand(512, 3, 32, 32), torch.randint(0, 10, (512,))) for _ in range(n)]


if __name__ == "__main__":
    torch.cuda.memory._record_memory_history(max_entries=100000)
    torch.manual_seed(0)
    learner = Learner(4)
    for task in range(4):
        learner.learn(task, task_data())
    torch.cuda.memory._dump_snapshot("continual.pickle")
    print(learner.plot())
