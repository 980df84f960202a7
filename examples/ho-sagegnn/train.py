"""GraphSAGE on sampled two-hop neighbourhoods."""
import sys

import torch
import torch.nn.functional as F
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import k_hop_subgraph


class SAGE(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, out_channels):
        super().__init__()
        self.convs = torch.nn.ModuleList([
            SAGEConv(in_channels, hidden_channels), SAGEConv(hidden_channels, hidden_channels), SAGEConv(hidden_channels, out_channels)])

    def forward(self, x, edge_index):
        for i, conv in enumerate(self.convs):
            x = conv(x, edge_index)
            if i < len(self.convs) - 1:
                x = F.dropout(x.relu_(), p=0.5, training=self.training)
        return x


num_nodes, feats, classes = 60000, 256, 40
torch.manual_seed(1)
edge_index = torch.stack([torch.randint(num_nodes, (600000,)), torch.randint(num_nodes, (600000,))])
x, y = torch.randn(num_nodes, feats), torch.randint(classes, (num_nodes,))


def batches(size):
    for seeds in torch.randperm(num_nodes)[:size * 8].split(size):
        subset, sub_edges, mapping, _ = k_hop_subgraph(seeds, 2, edge_index, relabel_nodes=True, num_nodes=num_nodes)
        yield x[subset], sub_edges, mapping, y[seeds]


torch.cuda.memory._record_memory_history(max_entries=100000)
device = torch.device("cuda")
model = SAGE(feats, 1024, classes).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)


def train():
    model.train()
    total_loss = 0
    for feat, edges, seeds, target in batches(512):
        feat, edges, seeds, target = feat.to(device), edges.to(device), seeds.to(device), target.to(device)
        optimizer.zero_grad()
        out = model(feat, edges)[seeds]
        loss = F.cross_entropy(out, target)
        loss.backward()
        optimizer.step()
        total_loss += float(loss)
        print(tuple(feat.shape), tuple(edges.shape))
    return total_loss


for epoch in range(2):
    print(f"Epoch {epoch}: {train():.4f}")
torch.cuda.memory._dump_snapshot(sys.argv[1])
