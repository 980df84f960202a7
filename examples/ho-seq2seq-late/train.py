"""Transformer translation model in the style of the tutorials."""
import sys

import torch
import torch.nn as nn
from torch import Tensor


class Seq2SeqTransformer(nn.Module):
    def __init__(self, layers, emb_size, nhead, src_vocab, tgt_vocab, ff):
        super().__init__()
        self.transformer = nn.Transformer(emb_size, nhead, layers, layers, ff, 0.1)
        self.generator = nn.Linear(emb_size, tgt_vocab)
        self.src_tok_emb, self.tgt_tok_emb = nn.Embedding(src_vocab, emb_size), nn.Embedding(tgt_vocab, emb_size)

    def forward(self, src: Tensor, trg: Tensor, tgt_mask: Tensor):
        outs = self.transformer(self.src_tok_emb(src), self.tgt_tok_emb(trg), tgt_mask=tgt_mask)
        return self.generator(outs)


DEVICE = torch.device("cuda")
torch.manual_seed(0)
torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
transformer = Seq2SeqTransformer(6, 1024, 8, 8000, 8000, 4096).to(DEVICE)
loss_fn = nn.CrossEntropyLoss(ignore_index=1)
optimizer = torch.optim.Adam(transformer.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
pairs = [(torch.randint(2, 8000, (32, 24)), torch.randint(2, 8000, (33, 24))) for _ in range(5)]


def train_epoch(model, optimizer):
    model.train()
    losses = 0
    for src, tgt in pairs:
        src = src.to(DEVICE)
        tgt = tgt.to(DEVICE)
        tgt_input = tgt[:-1, :]
        tgt_mask = nn.Transformer.generate_square_subsequent_mask(tgt_input.shape[0], device=DEVICE)
        logits = model(src, tgt_input, tgt_mask)
        loss = loss_fn(logits.reshape(-1, logits.shape[-1]), tgt[1:, :].reshape(-1))
        model.zero_grad()
        loss.backward()
        optimizer.step()
        losses += loss.item()
    return losses / len(pairs)


for epoch in range(1, 3):
    print(epoch, train_epoch(transformer, optimizer))
torch.cuda.memory._dump_snapshot(sys.argv[1])
