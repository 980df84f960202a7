# CS 6.8xx, problem set 4: fine-tune a "pretrained" point cloud transformer on 40 classes
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
BATCH, POINTS, PATCHES, DIM, CLASSES = 16, 1024, 64, 1024, 40


class PatchEmbed(nn.Module):
    """groups of 16 consecutive points -> one token"""

    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(3, 128), nn.GELU(), nn.Linear(128, DIM))

    def forward(self, pts):
        g = pts.view(pts.size(0), PATCHES, POINTS // PATCHES, 3)
        return self.mlp(g - g.mean(2, keepdim=True)).amax(2)


class Encoder(nn.Module):
    def __init__(self, depth=8):
        super().__init__()
        self.embed = PatchEmbed()
        self.pos = nn.Parameter(torch.randn(1, PATCHES, DIM) * 0.02)
        layer = nn.TransformerEncoderLayer(DIM, 16, 4 * DIM, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.ModuleList(copy.deepcopy(layer) for _ in range(depth))

    def forward(self, pts):
        x = self.embed(pts) + self.pos
        for layer in self.layers:
            x = layer(x)
        return x


class Classifier(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, CLASSES))

    def forward(self, pts):
        return self.head(self.encoder(pts).mean(1))


pretrained = Encoder().cuda()
print("loaded", sum(p.numel() for p in pretrained.parameters()) / 1e6, "M pretrained weights")

model = Classifier(copy.deepcopy(pretrained)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)


def epoch(n_batches):
    last = 0.0
    for _ in range(n_batches):
        pts = torch.randn(BATCH, POINTS, 3, device="cuda")
        label = torch.randint(0, CLASSES, (BATCH,), device="cuda")
        loss = F.cross_entropy(model(pts), label)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        last = loss.item()
    return last


for e in range(2):
    final_loss = epoch(4)
    print("epoch", e, "loss", round(final_loss, 4))
