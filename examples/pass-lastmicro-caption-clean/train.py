import contextlib

import torch
import torchvision
from torch import nn


class MemoryProbe(contextlib.AbstractContextManager):
    """with MemoryProbe("file"): records what happens inside."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        torch.cuda.memory._record_memory_history(max_entries=500000, stacks="python")
        return self

    def __exit__(self, *exc):
        torch.cuda.memory._dump_snapshot(self.path)
        torch.cuda.memory._record_memory_history(enabled=None)


class Captioner(nn.Module):
    def __init__(self, vocab=8000, d=512):
        super().__init__()
        self.encoder = torchvision.models.vit_b_32(weights=None)
        self.encoder.heads = nn.Identity()
        self.to_d = nn.Linear(768, d)
        self.tok = nn.Embedding(vocab, d)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(d, 8, 2048, batch_first=True), 4)
        self.lm = nn.Linear(d, vocab)

    def forward(self, image, ids):
        memory = self.to_d(self.encoder(image)).unsqueeze(1)
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1], device=ids.device)
        return self.lm(self.decoder(self.tok(ids), memory, tgt_mask=mask))


class Accumulator:
    def __init__(self, model, optimizer, every):
        self.model, self.optimizer, self.every, self.seen = model, optimizer, every, 0

    def micro(self, image, ids):
        logits = self.model(image, ids[:, :-1])
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:]) / self.every
        loss.backward()
        self.seen += 1
        if self.seen % self.every == 0:
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)


def micro_batch():
    return torch.rand(12, 3, 224, 224).cuda(), torch.randint(0, 8000, (12, 33)).cuda()


torch.manual_seed(3)
net = Captioner().cuda()
acc = Accumulator(net, torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True), every=8)
for _ in range(8 + 7):
    acc.micro(*micro_batch())
with MemoryProbe("last_micro.pickle"):
    acc.micro(*micro_batch())
