"""SimCLR on random views."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torch.amp import GradScaler, autocast


class ResNetSimCLR(nn.Module):
    def __init__(self, out_dim=128):
        super().__init__()
        self.backbone = torchvision.models.resnet18(weights=None, num_classes=out_dim)
        self.backbone.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        self.backbone.maxpool = nn.Identity()
        dim_mlp = self.backbone.fc.in_features
        self.backbone.fc = nn.Sequential(nn.Linear(dim_mlp, dim_mlp), nn.ReLU(), self.backbone.fc)

    def forward(self, x):
        return self.backbone(x)


class SimCLR(object):
    def __init__(self, model, optimizer, scheduler, batch_size=1536, temperature=0.07):
        self.model, self.optimizer, self.scheduler = model.cuda(), optimizer, scheduler
        self.batch_size, self.temperature = batch_size, temperature
        self.criterion = torch.nn.CrossEntropyLoss().cuda()

    def info_nce_loss(self, features):
        labels = torch.cat([torch.arange(self.batch_size) for i in range(2)], dim=0)
        labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float().cuda()
        features = F.normalize(features, dim=1)
        similarity_matrix = torch.matmul(features, features.T)
        mask = torch.eye(labels.shape[0], dtype=torch.bool).cuda()
        labels = labels[~mask].view(labels.shape[0], -1)
        similarity_matrix = similarity_matrix[~mask].view(similarity_matrix.shape[0], -1)
        positives = similarity_matrix[labels.bool()].view(labels.shape[0], -1)
        negatives = similarity_matrix[~labels.bool()].view(similarity_matrix.shape[0], -1)
        logits = torch.cat([positives, negatives], dim=1)
        return logits / self.temperature, torch.zeros(logits.shape[0], dtype=torch.long).cuda()

    def train(self, train_loader, epochs):
        scaler = GradScaler("cuda")
        n_iter = 0
        for epoch_counter in range(epochs):
            for images in train_loader:
                images = torch.cat(images, dim=0).cuda()
                with autocast("cuda"):
                    features = self.model(images)
                    logits, labels = self.info_nce_loss(features)
                    loss = self.criterion(logits, labels)
                self.optimizer.zero_grad()
                scaler.scale(loss).backward()
                scaler.step(self.optimizer)
                scaler.update()
                top1 = (logits.argmax(dim=1) == labels).float().mean()
                print(n_iter, loss.item(), top1.item())
                n_iter += 1
            self.scheduler.step()


def main():
    model = ResNetSimCLR()
    optimizer = torch.optim.Adam(model.parameters(), 3e-4, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    torch.cuda.memory._record_memory_history(max_entries=100000)
    loader = [[torch.rand(1536, 3, 16, 16), torch.rand(1536, 3, 16, 16)] for _ in range(4)]
    SimCLR(model, optimizer, scheduler).train(loader, 2)
    torch.cuda.memory._dump_snapshot(sys.argv[1])


if __name__ == "__main__":
    main()
