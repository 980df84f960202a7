"""Synthetic photo set and a collator that augments on the GPU."""
import torch


def make_photos(count, size, classes, seed=0):
    gen = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8, generator=gen)
    labels = torch.randint(0, classes, (count,), generator=gen)
    return [{"image": images[i], "label": int(labels[i])} for i in range(count)]


class GpuAugment:
    """Turns a list of uint8 photos into a normalised, augmented batch.

    The panel lets us eyeball "before / after" pairs once training is over.
    """

    def __init__(self, device="cuda", jitter=0.02):
        self.device = device
        self.jitter = jitter
        self.mean = torch.tensor([0.485, 0.456, 0.406], device=device).view(1, 3, 1, 1)
        self.std = torch.tensor([0.229, 0.224, 0.225], device=device).view(1, 3, 1, 1)
        self.panel = []

    def __call__(self, examples):
        raw = torch.stack([e["image"] for e in examples]).to(self.device)
        pixels = raw.float().div_(255.0).sub_(self.mean).div_(self.std)
        flip = torch.rand(len(examples), 1, 1, 1, device=self.device) < 0.5
        augmented = torch.where(flip, pixels.flip(-1), pixels)
        augmented = augmented + self.jitter * torch.randn_like(augmented)
        self.panel.append((pixels, augmented))
        labels = torch.tensor([e["label"] for e in examples], device=self.device)
        return {"pixel_values": augmented, "labels": labels}
