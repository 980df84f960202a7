from __future__ import print_function
import sys

import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self, ch=64):
        super(VAE, self).__init__()
        self.enc = nn.Sequential(
            nn.Conv2d(3, ch, 4, 2, 1), nn.ReLU(), nn.Conv2d(ch, ch * 2, 4, 2, 1), nn.ReLU(), nn.Conv2d(ch * 2, ch * 4, 4, 2, 1), nn.ReLU())
        self.fc21, self.fc22 = nn.Linear(ch * 4 * 256, 128), nn.Linear(ch * 4 * 256, 128)
        self.fc3 = nn.Linear(128, ch * 4 * 256)
        self.dec = nn.Sequential(
            nn.ConvTranspose2d(ch * 4, ch * 2, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(ch * 2, ch, 4, 2, 1), nn.ReLU(),
            nn.ConvTranspose2d(ch, 3, 4, 2, 1), nn.Sigmoid())

    def encode(self, x):
        h1 = self.enc(x).flatten(1)
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar)
        return self.dec(F.relu(self.fc3(z)).view(-1, 256, 16, 16)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.mse_loss(recon_x, x, reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


torch.cuda.memory._record_memory_history(max_entries=100000)
device = torch.device("cuda")
train_loader = torch.utils.data.DataLoader(torch.rand(64 * 5, 3, 128, 128), batch_size=64, shuffle=True, num_workers=1, pin_memory=True)
model = VAE().to(device)
optimizer = optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda", init_scale=2.0)


def train(epoch):
    model.train()
    train_loss = 0
    for batch_idx, data in enumerate(train_loader):
        data = data.to(device)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch.float(), data, mu.float(), logvar.float()) / len(data)
        scaler.scale(loss).backward()
        train_loss += loss.item()
        scaler.step(optimizer)
        scaler.update()
        torch.cuda.empty_cache()
    print("====> Epoch: {} Average loss: {:.4f}".format(epoch, train_loss / len(train_loader.dataset)))


if __name__ == "__main__":
    for epoch in range(1, 3):
        train(epoch)
    torch.cuda.memory._dump_snapshot(sys.argv[1])
