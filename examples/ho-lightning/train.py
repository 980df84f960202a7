"""LightningModule: autoencoder with gradient clipping, accumulation and validation."""
import sys

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class LitAutoEncoder(L.LightningModule):
    def __init__(self, dim=4096, hidden=2048):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, 1024))
        self.decoder = nn.Sequential(nn.Linear(1024, hidden), nn.ReLU(), nn.Linear(hidden, dim))
        self.validation_step_outputs = []

    def training_step(self, batch, batch_idx):
        (x,) = batch
        x_hat = self.decoder(self.encoder(x))
        loss = nn.functional.mse_loss(x_hat, x)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        (x,) = batch
        x_hat = self.decoder(self.encoder(x))
        self.validation_step_outputs.append(x_hat)
        self.log("val_loss", nn.functional.mse_loss(x_hat, x))

    def on_validation_epoch_end(self):
        spread = torch.cat([o.std(0, keepdim=True) for o in self.validation_step_outputs]).mean()
        self.log("spread", spread)
        self.validation_step_outputs.clear()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3, fused=False, foreach=True)


def main():
    train = DataLoader(TensorDataset(torch.randn(2048 * 6, 4096)), batch_size=2048)
    val = DataLoader(TensorDataset(torch.randn(2048 * 3, 4096)), batch_size=2048)
    torch.cuda.memory._record_memory_history(max_entries=100000)
    trainer = L.Trainer(
        max_epochs=3, accelerator="gpu", devices=1, accumulate_grad_batches=2, gradient_clip_val=1.0,
        num_sanity_val_steps=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(LitAutoEncoder(), train, val)
    torch.cuda.memory._dump_snapshot(sys.argv[1])


if __name__ == "__main__":
    main()
