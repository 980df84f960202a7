import sys
import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def dblock(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 4, 2, 1), nn.GELU())


def gblock(i, o):
    return nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1), nn.BatchNorm2d(o), nn.ReLU(True))


class LitGAN(L.LightningModule):
    """Two optimizers by hand, R1 on the real images (lazy: every 4th step only)."""

    def __init__(self, nz=96, ch=64, r1_gamma=10.0, r1_every=4):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.G = nn.Sequential(nn.ConvTranspose2d(nz, ch * 8, 4), nn.ReLU(True), gblock(ch * 8, ch * 4), gblock(ch * 4, ch * 2),
                               gblock(ch * 2, ch), nn.ConvTranspose2d(ch, 3, 4, 2, 1), nn.Tanh())
        self.D = nn.Sequential(dblock(3, ch), dblock(ch, ch * 2), dblock(ch * 2, ch * 4), dblock(ch * 4, ch * 8),
                               nn.Conv2d(ch * 8, 1, 4), nn.Flatten())
        self.curves = {"r1": [], "d": [], "g": []}

    def r1_penalty(self, real, score):
        (grad,) = torch.autograd.grad(score.sum(), real, create_graph=True)
        return grad.square().flatten(1).sum(1).mean()

    def training_step(self, batch, idx):
        opt_g, opt_d = self.optimizers()
        real = batch[0].requires_grad_()
        z = torch.randn(len(real), self.hparams.nz, 1, 1, device=self.device)

        self.toggle_optimizer(opt_d)
        with torch.no_grad():
            fake = self.G(z)
        score = self.D(real)
        d_loss = F.softplus(-score).mean() + F.softplus(self.D(fake)).mean()
        r1 = self.r1_penalty(real, score)
        self.curves["r1"].append(r1)
        if idx % self.hparams.r1_every == 0:
            d_loss = d_loss + 0.5 * self.hparams.r1_gamma * self.hparams.r1_every * r1
        opt_d.zero_grad()
        self.manual_backward(d_loss)
        opt_d.step()
        self.untoggle_optimizer(opt_d)

        self.toggle_optimizer(opt_g)
        g_loss = F.softplus(-self.D(self.G(z))).mean()
        opt_g.zero_grad()
        self.manual_backward(g_loss)
        opt_g.step()
        self.untoggle_optimizer(opt_g)
        self.curves["d"].append(d_loss.item())
        self.curves["g"].append(g_loss.item())
        self.log_dict({"d": d_loss.detach(), "g": g_loss.detach()}, prog_bar=False)

    def configure_optimizers(self):
        return (torch.optim.Adam(self.G.parameters(), 2e-4, betas=(0.0, 0.99)),
                torch.optim.Adam(self.D.parameters(), 2e-4, betas=(0.0, 0.99)))


if __name__ == "__main__":
    torch.cuda.memory._record_memory_history()
    loader = DataLoader(TensorDataset(torch.randn(768, 3, 64, 64)), batch_size=64, drop_last=True)
    trainer = L.Trainer(max_epochs=1, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(LitGAN(), loader)
    torch.cuda.memory._dump_snapshot(sys.argv[1])
