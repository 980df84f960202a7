"""Reranking service: profiles the largest request first, then sets up its result cache and serves small requests."""
import sys

import torch
import torch.nn as nn


class CrossEncoder(nn.Module):
    def __init__(self, vocab=30000, dim=768, layers=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, 12, 4 * dim, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), nn.Linear(dim, 1)

    def forward(self, ids):
        return self.head(self.encoder(self.embed(ids))[:, 0]).squeeze(1)


class Service:
    def __init__(self, model):
        self.model = model
        self.profile()
        self.cache = torch.zeros(128, 512 * 1024, device="cuda", dtype=torch.float16)
        torch.cuda.empty_cache()

    def profile(self, batch=1024, length=512):
        torch.cuda.reset_peak_memory_stats()
        self.model(torch.zeros(batch, length, dtype=torch.long, device="cuda"))
        torch.cuda.synchronize()
        print(f"largest request needs {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")

    def rank(self, slot, documents):
        scores = self.model(documents.cuda())
        self.cache[slot, : len(scores)] = scores.half()
        return scores.argsort(descending=True).tolist()


@torch.inference_mode()
def main():
    model = CrossEncoder().to("cuda", torch.float16).eval()
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    service = Service(model)
    for request in range(16):
        order = service.rank(request, torch.randint(0, 30000, (16, 128)))
        print(request, order[:3])
    torch.cuda.memory._dump_snapshot(sys.argv[1])


main()
