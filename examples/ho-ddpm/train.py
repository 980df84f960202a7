"""Denoising diffusion with an EMA copy; samples a grid at the end of every epoch."""
import copy
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


class ResBlock(nn.Module):
    def __init__(self, cin, cout, temb=256):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(8, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.emb = nn.Linear(temb, cout)
        self.n2, self.c2 = nn.GroupNorm(8, cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x))) + self.emb(F.silu(t))[:, :, None, None]
        return self.c2(F.silu(self.n2(h))) + self.skip(x)


class UNet(nn.Module):
    def __init__(self, ch=96):
        super().__init__()
        self.ch = ch
        self.time = nn.Sequential(nn.Linear(ch, 256), nn.SiLU(), nn.Linear(256, 256))
        self.inp = nn.Conv2d(3, ch, 3, padding=1)
        self.d1, self.d2 = ResBlock(ch, ch), ResBlock(ch, ch * 2)
        self.mid = ResBlock(ch * 2, ch * 2)
        self.u2, self.u1 = ResBlock(ch * 4, ch), ResBlock(ch * 2, ch)
        self.out = nn.Conv2d(ch, 3, 3, padding=1)

    def forward(self, x, t):
        freq = torch.exp(torch.arange(self.ch // 2, device=x.device) * (-9.2 / (self.ch // 2)))
        ang = t[:, None].float() * freq[None]
        t = self.time(torch.cat([ang.sin(), ang.cos()], 1))
        h1 = self.d1(self.inp(x), t)
        h2 = self.d2(F.avg_pool2d(h1, 2), t)
        h = self.mid(F.avg_pool2d(h2, 2), t)
        h = self.u2(torch.cat([F.interpolate(h, scale_factor=2), h2], 1), t)
        return self.out(self.u1(torch.cat([F.interpolate(h, scale_factor=2), h1], 1), t))


class EMA:
    def __init__(self, beta):
        self.beta = beta

    def step_ema(self, ema_model, model):
        for cur, ema in zip(model.parameters(), ema_model.parameters()):
            ema.data = ema.data * self.beta + cur.data * (1 - self.beta)


class Diffusion:
    def __init__(self, noise_steps=12, img_size=64, device="cuda"):
        self.noise_steps, self.img_size, self.device = noise_steps, img_size, device
        self.beta = torch.linspace(1e-4, 0.02, noise_steps).to(device)
        self.alpha = 1.0 - self.beta
        self.alpha_hat = torch.cumprod(self.alpha, dim=0)

    def noise_images(self, x, t):
        a = self.alpha_hat[t][:, None, None, None]
        eps = torch.randn_like(x)
        return a.sqrt() * x + (1 - a).sqrt() * eps, eps

    def sample_timesteps(self, n):
        return torch.randint(low=1, high=self.noise_steps, size=(n,), device=self.device)

    def sample(self, model, n):
        model.eval()
        with torch.no_grad():
            x = torch.randn((n, 3, self.img_size, self.img_size)).to(self.device)
            for i in reversed(range(1, self.noise_steps)):
                t = (torch.ones(n) * i).long().to(self.device)
                predicted_noise = model(x, t)
                alpha, alpha_hat, beta = (v[t][:, None, None, None] for v in (self.alpha, self.alpha_hat, self.beta))
                noise = torch.randn_like(x) if i > 1 else torch.zeros_like(x)
                x = 1 / alpha.sqrt() * (x - (1 - alpha) / (1 - alpha_hat).sqrt() * predicted_noise) + beta.sqrt() * noise
        model.train()
        return ((x.clamp(-1, 1) + 1) / 2 * 255).type(torch.uint8)


def train(path, epochs=2, steps=4, device="cuda"):
    torch.cuda.memory._record_memory_history(max_entries=100000)
    model = UNet().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    mse = nn.MSELoss()
    diffusion = Diffusion(device=device)
    ema = EMA(0.995)
    ema_model = copy.deepcopy(model).eval().requires_grad_(False)
    dataloader = [torch.rand(16, 3, 64, 64) * 2 - 1 for _ in range(steps)]
    for epoch in range(epochs):
        for i, images in enumerate(dataloader):
            images = images.to(device)
            t = diffusion.sample_timesteps(images.shape[0])
            x_t, noise = diffusion.noise_images(images, t)
            predicted_noise = model(x_t, t)
            loss = mse(noise, predicted_noise)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ema.step_ema(ema_model, model)
        sampled_images = diffusion.sample(model, n=8)
        print(epoch, loss.item(), sampled_images.shape)
    torch.cuda.memory._dump_snapshot(path)


if __name__ == "__main__":
    train(sys.argv[1])
