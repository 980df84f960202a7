import torch
import torch.nn as nn


class ConvAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 64, 4, 2, 1), nn.ReLU(), nn.Conv2d(64, 128, 4, 2, 1), nn.ReLU(), nn.Conv2d(128, 256, 4, 2, 1), nn.ReLU(),
            nn.Flatten(), nn.Linear(256 * 16 * 16, 768),
        )
        self.decoder = nn.Sequential(
            nn.Linear(768, 256 * 16 * 16), nn.Unflatten(1, (256, 16, 16)), nn.ConvTranspose2d(256, 128, 4, 2, 1), nn.ReLU(),
            nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Sigmoid(),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


def run_epoch(model, opt, loader, record_at=None):
    for i, x in enumerate(loader):
        if i == record_at:
            torch.cuda.memory._record_memory_history(max_entries=100000)
        opt.zero_grad()
        recon = model(x.cuda())
        loss = nn.functional.mse_loss(recon, x.cuda())
        loss.backward()
        opt.step()
        if i == record_at:
            torch.cuda.memory._dump_snapshot(f"ae_step{i}.pickle")
            torch.cuda.memory._record_memory_history(enabled=None)
            return
        print(i, loss.item())


torch.manual_seed(0)
ae = ConvAE().cuda()
run_epoch(ae, torch.optim.SGD(ae.parameters(), lr=1e-2, momentum=0.9), torch.rand(6, 48, 3, 128, 128), record_at=5)
