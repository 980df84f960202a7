import math
import torch


class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state, grad = self.state[p], p.grad.data
                m, v, t = state.get("m", torch.zeros_like(p.data)), state.get("v", torch.zeros_like(p.data)), state.get("t", 1)
                m = b1 * m + (1 - b1) * grad
                v = b2 * v + (1 - b2) * grad**2
                lr = group["lr"] * math.sqrt(1 - b2**t) / (1 - b1**t)
                p.data -= lr * m / (torch.sqrt(v) + group["eps"])
                p.data -= group["lr"] * group["weight_decay"] * p.data
                state["m"], state["v"], state["t"] = m, v, t + 1
