"""WGAN-GP: five critic steps for each generator step, gradient penalty with create_graph."""
import sys

import torch
import torch.nn as nn
import torch.optim as optim


def gradient_penalty(critic, real, fake, device):
    alpha = torch.rand(real.size(0), 1, 1, 1, device=device)
    interpolated = real * alpha + fake * (1 - alpha)
    interpolated.requires_grad_(True)
    mixed_scores = critic(interpolated)
    gradient = torch.autograd.grad(
        inputs=interpolated, outputs=mixed_scores, grad_outputs=torch.ones_like(mixed_scores),
        create_graph=True, retain_graph=True)[0]
    return ((gradient.flatten(1).norm(2, dim=1) - 1) ** 2).mean()


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 4, 2, 1), nn.InstanceNorm2d(o, affine=True), nn.LeakyReLU(0.2))


def deconv(i, o):
    return nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1), nn.BatchNorm2d(o), nn.ReLU())


DEVICE, Z_DIM, CRITIC_ITERATIONS, LAMBDA_GP, BATCH = "cuda", 100, 5, 10, 64
torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
critic = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2), conv(64, 128), conv(128, 256), nn.Conv2d(256, 1, 8)).to(DEVICE)
gen = nn.Sequential(nn.ConvTranspose2d(Z_DIM, 512, 4), nn.ReLU(), deconv(512, 256), deconv(256, 128), deconv(128, 64),
                    nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh()).to(DEVICE)
opt_gen = optim.Adam(gen.parameters(), lr=1e-4, betas=(0.0, 0.9))
opt_critic = optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
loader = [torch.rand(BATCH, 3, 64, 64) * 2 - 1 for _ in range(6)]

for batch_idx, real in enumerate(loader):
    real = real.to(DEVICE)
    for _ in range(CRITIC_ITERATIONS):
        noise = torch.randn(BATCH, Z_DIM, 1, 1).to(DEVICE)
        fake = gen(noise)
        critic_real = critic(real).reshape(-1)
        critic_fake = critic(fake).reshape(-1)
        gp = gradient_penalty(critic, real, fake, device=DEVICE)
        loss_critic = -(torch.mean(critic_real) - torch.mean(critic_fake)) + LAMBDA_GP * gp
        loss_critic.backward(retain_graph=True)
        opt_critic.step()
    gen_fake = critic(fake).reshape(-1)
    loss_gen = -torch.mean(gen_fake)
    gen.zero_grad()
    loss_gen.backward()
    opt_gen.step()
    print(f"Batch {batch_idx}/{len(loader)} Loss D: {loss_critic:.4f}, loss G: {loss_gen:.4f}")
torch.cuda.memory._dump_snapshot(sys.argv[1])
