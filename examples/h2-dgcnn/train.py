"""Dynamic graph CNN: the k nearest neighbours of every point are found anew in each layer."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


def knn(x, k):
    inner = -2 * torch.matmul(x.transpose(2, 1), x)
    xx = torch.sum(x**2, dim=1, keepdim=True)
    pairwise_distance = -xx - inner - xx.transpose(2, 1)
    return pairwise_distance.topk(k=k, dim=-1)[1]


def get_graph_feature(x, k=8):
    batch_size, num_dims, num_points = x.shape
    idx = knn(x, k=k) + torch.arange(batch_size, device=x.device).view(-1, 1, 1) * num_points
    x = x.transpose(2, 1).contiguous()
    feature = x.view(batch_size * num_points, -1)[idx.view(-1)].view(batch_size, num_points, k, num_dims)
    x = x.view(batch_size, num_points, 1, num_dims).expand(-1, -1, k, -1)
    return torch.cat((feature - x, x), dim=3).permute(0, 3, 1, 2)


class DGCNN(nn.Module):
    def __init__(self, classes=40):
        super().__init__()
        self.conv1 = nn.Sequential(nn.Conv2d(6, 32, 1, bias=False), nn.BatchNorm2d(32), nn.LeakyReLU(0.2, inplace=True))
        self.conv2 = nn.Sequential(nn.Conv2d(64, 32, 1, bias=False), nn.BatchNorm2d(32), nn.LeakyReLU(0.2, inplace=True))
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        x1 = self.conv1(get_graph_feature(x)).max(dim=-1).values
        x2 = self.conv2(get_graph_feature(x1)).max(dim=-1).values
        return self.head(torch.cat((x1, x2), dim=1).max(dim=-1).values)


def main():
    model = DGCNN().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    for step in range(10):
        points, label = torch.rand(4, 3, 4096, device="cuda"), torch.randint(0, 40, (4,), device="cuda")
        optimizer.zero_grad()
        loss = F.cross_entropy(model(points), label)
        loss.backward()
        optimizer.step()
        print(step, loss.item())
    torch.cuda.memory._dump_snapshot(sys.argv[1])


main()
