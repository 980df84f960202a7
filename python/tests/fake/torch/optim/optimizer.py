_hooks = []


def register_optimizer_step_post_hook(hook):
    _hooks.append(hook)
    return Handle(hook)


class Handle:
    def __init__(self, hook):
        self._hook = hook

    def remove(self):
        _hooks.remove(self._hook)


class Optimizer:
    def step(self):
        for hook in list(_hooks):
            hook(self, (), {})
