"""GAN with Lightning's manual optimization."""
import sys

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader


class Generator(nn.Module):
    def __init__(self, latent_dim, ch=128):
        super().__init__()
        self.fc = nn.Linear(latent_dim, ch * 4 * 8 * 8)
        self.net = nn.Sequential(
            nn.Unflatten(1, (ch * 4, 8, 8)), nn.BatchNorm2d(ch * 4), nn.ReLU(True),
            nn.ConvTranspose2d(ch * 4, ch * 2, 4, 2, 1), nn.BatchNorm2d(ch * 2), nn.ReLU(True),
            nn.ConvTranspose2d(ch * 2, ch, 4, 2, 1), nn.BatchNorm2d(ch), nn.ReLU(True),
            nn.ConvTranspose2d(ch, 3, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.net(self.fc(z))


class Discriminator(nn.Module):
    def __init__(self, ch=128):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, ch, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(ch, ch * 2, 4, 2, 1), nn.LeakyReLU(0.2),
            nn.Conv2d(ch * 2, ch * 4, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(ch * 4 * 64, 1))

    def forward(self, x):
        return self.net(x)


class GAN(L.LightningModule):
    def __init__(self, latent_dim=128):
        super().__init__()
        self.automatic_optimization = False
        self.latent_dim = latent_dim
        self.generator, self.discriminator = Generator(latent_dim), Discriminator()

    def configure_optimizers(self):
        g = torch.optim.Adam(self.generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
        d = torch.optim.Adam(self.discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
        return [g, d], []

    def training_step(self, batch, batch_idx):
        imgs = batch
        optimizer_g, optimizer_d = self.optimizers()
        z = torch.randn(imgs.shape[0], self.latent_dim).type_as(imgs)
        valid, fake = torch.ones(imgs.size(0), 1).type_as(imgs), torch.zeros(imgs.size(0), 1).type_as(imgs)

        self.toggle_optimizer(optimizer_g)
        g_loss = F.binary_cross_entropy_with_logits(self.discriminator(self.generator(z)), valid)
        self.log("g_loss", g_loss)
        self.manual_backward(g_loss)
        optimizer_g.step()
        optimizer_g.zero_grad()
        self.untoggle_optimizer(optimizer_g)

        self.toggle_optimizer(optimizer_d)
        real_loss = F.binary_cross_entropy_with_logits(self.discriminator(imgs), valid)
        fake_loss = F.binary_cross_entropy_with_logits(self.discriminator(self.generator(z).detach()), fake)
        d_loss = (real_loss + fake_loss) / 2
        self.log("d_loss", d_loss)
        self.manual_backward(d_loss)
        optimizer_d.step()
        optimizer_d.zero_grad()
        self.untoggle_optimizer(optimizer_d)


if __name__ == "__main__":
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    images = torch.rand(64 * 4, 3, 64, 64) * 2 - 1
    trainer = L.Trainer(
        max_epochs=3, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(GAN(), DataLoader(images, batch_size=64))
    torch.cuda.memory._dump_snapshot(sys.argv[1])
