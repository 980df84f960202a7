import torch


def knn(xyz, k):
    return torch.cdist(xyz, xyz).topk(k + 1, dim=-1, largest=False).indices[..., 1:]


def frequency_encoding(d, bands=8):
    f = d.unsqueeze(-1) * (2.0 ** torch.arange(bands, device=d.device))
    return torch.cat([f.sin(), f.cos()], dim=-1).flatten(-2)


class CloudBatch:
    """A batch of point clouds with its neighbour graph and the encoded relative positions of every edge."""

    def __init__(self, xyz, label, k=20):
        self.xyz, self.label, self.k = xyz, label, k
        self.idx = knn(xyz, k)                                   # (B, N, k)
        self.gather = lambda feats: self._take(feats)
        rel = self.gather(xyz) - xyz.unsqueeze(2)                # (B, N, k, 3)
        self.edge = frequency_encoding(rel)                      # (B, N, k, 48)

    def _take(self, feats):
        b = torch.arange(feats.shape[0], device=feats.device).view(-1, 1, 1)
        return feats[b, self.idx]
