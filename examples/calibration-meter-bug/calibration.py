"""Expected calibration error over all next-token predictions of an evaluation."""
import torch


class CalibrationMeter:
    def __init__(self, bins=15):
        self.bins = bins
        self.reset()

    def reset(self):
        self.probs, self.targets = [], []

    def __call__(self, eval_pred, compute_result=False):
        logits, labels = eval_pred.predictions, eval_pred.label_ids
        self.probs.append(torch.softmax(logits, dim=-1))
        self.targets.append(labels)
        if not compute_result:
            return {}
        edges = torch.linspace(0, 1, self.bins + 1, device=labels.device)
        count = torch.zeros(self.bins, device=labels.device)
        gap = torch.zeros(self.bins, device=labels.device)
        for probs, labels in zip(self.probs, self.targets):
            confidence, guess = probs[:, :-1].max(-1)
            right = (guess == labels[:, 1:]).float()
            index = (torch.bucketize(confidence, edges) - 1).clamp(0, self.bins - 1).flatten()
            count.index_add_(0, index, torch.ones_like(confidence).flatten())
            gap.index_add_(0, index, (right - confidence).flatten())
        ece = (gap.abs().sum() / count.sum()).item()
        self.reset()
        return {"ece": ece}
