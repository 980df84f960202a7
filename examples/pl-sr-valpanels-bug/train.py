"""WDSR-flavoured x4 super-resolution, synthetic patches, PyTorch Lightning."""
import sys

import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm
from torch.utils.data import DataLoader, Dataset

SCALE = 4


class Patches(Dataset):
    def __init__(self, count, hr_size, seed):
        self.count, self.hr_size, self.seed = count, hr_size, seed

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        gen = torch.Generator().manual_seed(self.seed + i)
        hr = torch.rand(3, self.hr_size, self.hr_size, generator=gen)
        return F.avg_pool2d(hr[None], SCALE)[0], hr


class WideBlock(nn.Module):
    def __init__(self, width, expand=4):
        super().__init__()
        self.wide = weight_norm(nn.Conv2d(width, width * expand, 3, padding=1))
        self.narrow = weight_norm(nn.Conv2d(width * expand, width, 3, padding=1))

    def forward(self, x):
        return x + 0.2 * self.narrow(F.relu(self.wide(x)))


class WDSR(nn.Module):
    def __init__(self, width=48, blocks=4):
        super().__init__()
        self.head = weight_norm(nn.Conv2d(3, width, 3, padding=1))
        self.body = nn.Sequential(*[WideBlock(width) for _ in range(blocks)])
        self.tail = nn.Sequential(weight_norm(nn.Conv2d(width, 3 * SCALE ** 2, 3, padding=1)), nn.PixelShuffle(SCALE))

    def forward(self, x):
        return self.tail(self.body(self.head(x))) + F.interpolate(x, scale_factor=SCALE, mode="bilinear", align_corners=False)


class LitSR(pl.LightningModule):
    def __init__(self, lr=2e-4):
        super().__init__()
        self.net = WDSR()
        self.lr = lr
        self.val_results = []

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        small, large = batch
        return F.l1_loss(self(small), large)

    def validation_step(self, batch, batch_idx):
        small, large = batch
        restored = self(small).clamp(0, 1)
        psnr = -10 * torch.log10(F.mse_loss(restored, large))
        self.val_results.append({"restored": restored, "psnr": psnr})
        self.log("val_psnr", psnr)

    def on_validation_epoch_end(self):
        psnr = torch.stack([r["psnr"] for r in self.val_results])
        sharp = self.val_results[-1]["restored"].diff(dim=-1).abs().mean()
        print(f"epoch {self.current_epoch}: psnr {psnr.mean().item():.2f} dB, sharpness {sharp.item():.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


class DumpHistory(pl.Callback):
    def __init__(self, target):
        self.target = target

    def on_fit_start(self, trainer, pl_module):
        torch.cuda.memory._record_memory_history(max_entries=200000)

    def on_train_end(self, trainer, pl_module):
        torch.cuda.memory._dump_snapshot(self.target)


if __name__ == "__main__":
    pl.seed_everything(0)
    trainer = pl.Trainer(
        accelerator="gpu", devices=1, max_epochs=6, num_sanity_val_steps=0, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=[DumpHistory(sys.argv[1])],
    )
    trainer.fit(
        LitSR(),
        DataLoader(Patches(48, 256, seed=10_000), batch_size=16, shuffle=True),
        DataLoader(Patches(16, 512, seed=90_000), batch_size=8),
    )
