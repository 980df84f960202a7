"""Unpaired image translation: two generators, two discriminators, image pools."""
import itertools
import random
import sys

import torch
import torch.nn as nn


class ImagePool:
    def __init__(self, pool_size):
        self.pool_size, self.num_imgs, self.images = pool_size, 0, []

    def query(self, images):
        return_images = []
        for image in images:
            image = torch.unsqueeze(image.data, 0).clone()
            if self.num_imgs < self.pool_size:
                self.num_imgs += 1
                self.images.append(image)
                return_images.append(image)
            elif random.uniform(0, 1) > 0.5:
                idx = random.randint(0, self.pool_size - 1)
                return_images.append(self.images[idx].clone())
                self.images[idx] = image
            else:
                return_images.append(image)
        return torch.cat(return_images, 0)


class ResnetBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.block = nn.Sequential(
            nn.ReflectionPad2d(1), nn.Conv2d(dim, dim, 3), nn.InstanceNorm2d(dim), nn.ReLU(True),
            nn.ReflectionPad2d(1), nn.Conv2d(dim, dim, 3), nn.InstanceNorm2d(dim))

    def forward(self, x):
        return x + self.block(x)


def define_G(ngf=48, blocks=4):
    return nn.Sequential(
        nn.ReflectionPad2d(3), nn.Conv2d(3, ngf, 7), nn.InstanceNorm2d(ngf), nn.ReLU(True),
        nn.Conv2d(ngf, ngf * 2, 3, 2, 1), nn.InstanceNorm2d(ngf * 2), nn.ReLU(True),
        nn.Conv2d(ngf * 2, ngf * 4, 3, 2, 1), nn.InstanceNorm2d(ngf * 4), nn.ReLU(True),
        *[ResnetBlock(ngf * 4) for _ in range(blocks)],
        nn.ConvTranspose2d(ngf * 4, ngf * 2, 3, 2, 1, output_padding=1), nn.InstanceNorm2d(ngf * 2), nn.ReLU(True),
        nn.ConvTranspose2d(ngf * 2, ngf, 3, 2, 1, output_padding=1), nn.InstanceNorm2d(ngf), nn.ReLU(True),
        nn.ReflectionPad2d(3), nn.Conv2d(ngf, 3, 7), nn.Tanh()).cuda()


def define_D(ndf=64):
    return nn.Sequential(
        nn.Conv2d(3, ndf, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(ndf, ndf * 2, 4, 2, 1), nn.InstanceNorm2d(ndf * 2),
        nn.LeakyReLU(0.2), nn.Conv2d(ndf * 2, ndf * 4, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(ndf * 4, 1, 4, 1, 1)).cuda()


class CycleGANModel:
    def __init__(self):
        self.netG_A, self.netG_B, self.netD_A, self.netD_B = define_G(), define_G(), define_D(), define_D()
        self.fake_A_pool, self.fake_B_pool = ImagePool(24), ImagePool(24)
        self.optimizer_G = torch.optim.Adam(itertools.chain(self.netG_A.parameters(), self.netG_B.parameters()), lr=2e-4)
        self.optimizer_D = torch.optim.Adam(itertools.chain(self.netD_A.parameters(), self.netD_B.parameters()), lr=2e-4)
        self.gan, self.l1 = nn.MSELoss(), nn.L1Loss()

    def set_input(self, data):
        self.real_A, self.real_B = data["A"].cuda(), data["B"].cuda()

    def forward(self):
        self.fake_B = self.netG_A(self.real_A)
        self.rec_A = self.netG_B(self.fake_B)
        self.fake_A = self.netG_B(self.real_B)
        self.rec_B = self.netG_A(self.fake_A)

    def backward_D_basic(self, netD, real, fake):
        pred_real, pred_fake = netD(real), netD(fake.detach())
        loss_D = 0.5 * (self.gan(pred_real, torch.ones_like(pred_real)) + self.gan(pred_fake, torch.zeros_like(pred_fake)))
        loss_D.backward()
        return loss_D

    def backward_G(self):
        pred_B, pred_A = self.netD_A(self.fake_B), self.netD_B(self.fake_A)
        self.loss_G = (self.gan(pred_B, torch.ones_like(pred_B)) + self.gan(pred_A, torch.ones_like(pred_A))
                       + 10 * self.l1(self.rec_A, self.real_A) + 10 * self.l1(self.rec_B, self.real_B))
        self.loss_G.backward()

    def set_requires_grad(self, nets, flag):
        for net in nets:
            for p in net.parameters():
                p.requires_grad = flag

    def optimize_parameters(self):
        self.forward()
        self.set_requires_grad([self.netD_A, self.netD_B], False)
        self.optimizer_G.zero_grad()
        self.backward_G()
        self.optimizer_G.step()
        self.set_requires_grad([self.netD_A, self.netD_B], True)
        self.optimizer_D.zero_grad()
        self.loss_D_A = self.backward_D_basic(self.netD_A, self.real_B, self.fake_B_pool.query(self.fake_B))
        self.loss_D_B = self.backward_D_basic(self.netD_B, self.real_A, self.fake_A_pool.query(self.fake_A))
        self.optimizer_D.step()


if __name__ == "__main__":
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    model = CycleGANModel()
    dataset = [{"A": torch.rand(4, 3, 192, 192), "B": torch.rand(4, 3, 192, 192)} for _ in range(2)]
    total_iters = 0
    for epoch in range(5):
        for i, data in enumerate(dataset):
            total_iters += 1
            model.set_input(data)
            model.optimize_parameters()
            print(epoch, total_iters, f"{model.loss_G.item():.3f}")
    torch.cuda.memory._dump_snapshot(sys.argv[1])
