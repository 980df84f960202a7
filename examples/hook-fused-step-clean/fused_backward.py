import torch


class BackwardOptimizer:
    """Steps every parameter as soon as its gradient has been accumulated."""

    def __init__(self, params, factory):
        self.optimizers, self.handles = {}, []
        for p in params:
            self.optimizers[p] = factory([p])
            self.handles.append(p.register_post_accumulate_grad_hook(self._apply))

    def _apply(self, param: torch.Tensor) -> None:
        optimizer = self.optimizers[param]
        optimizer.step()
        optimizer.zero_grad()

    def remove(self):
        for handle in self.handles:
            handle.remove()
