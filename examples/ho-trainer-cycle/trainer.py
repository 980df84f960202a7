"""A small trainer: callbacks, metrics, one state object a step."""
import torch


class StepState:
    def __init__(self, trainer, batch):
        self.trainer, self.batch = trainer, batch
        self.outputs = self.loss = None
        self.metrics = {}

    def compute(self, model, loss_fn):
        images, labels = self.batch
        self.outputs = model(images)
        self.loss = loss_fn(self.outputs, labels)
        return self.loss

    def accuracy(self):
        return (self.outputs.detach().argmax(1) == self.batch[1]).float().mean().item()


class Trainer:
    def __init__(self, model, optimizer, loss_fn, callbacks=()):
        self.model, self.optimizer, self.loss_fn = model, optimizer, loss_fn
        self.callbacks = list(callbacks)
        self.global_step, self.history = 0, []

    def fit(self, batches):
        self.model.train()
        for batch in batches:
            self.history.append(self.run_step(batch))
            self.global_step += 1

    def run_step(self, batch):
        state = StepState(self, batch)
        loss = state.compute(self.model, self.loss_fn)
        state.metrics["acc"] = state.accuracy
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        for callback in self.callbacks:
            callback(self, state)
        return loss.item()
