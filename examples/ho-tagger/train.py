"""Bi-LSTM part-of-speech tagger with sentences of many lengths."""
import random
import sys

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_packed_sequence, pack_padded_sequence

PAD, WORDS, TAGS, MAX_LEN = 0, 20000, 45, 180
rng = random.Random(11)


def make_corpus(n):
    lengths = [int(min(MAX_LEN, max(5, rng.gauss(20 + (i // 128 * 53) % 120, 8)))) for i in range(n)]
    return [[rng.randrange(1, WORDS) for _ in range(length)] for length in lengths]


def iterate_minibatches(corpus, batch_size):
    for i in range(0, len(corpus), batch_size):
        batch = sorted(corpus[i:i + batch_size], key=len, reverse=True)
        longest = MAX_LEN
        words = torch.full((len(batch), longest), PAD)
        for row, sentence in enumerate(batch):
            words[row, :len(sentence)] = torch.tensor(sentence)
        yield words, torch.tensor([len(s) for s in batch]), words % TAGS


class Tagger(nn.Module):
    def __init__(self, dim=512, hidden=768):
        super().__init__()
        self.embed = nn.Embedding(WORDS, dim, padding_idx=PAD)
        self.lstm = nn.LSTM(dim, hidden, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * hidden, TAGS)

    def forward(self, words):
        hidden, _ = self.lstm(self.embed(words))
        return self.out(torch.tanh(hidden))


def main(path):
    torch.cuda.memory._record_memory_history(max_entries=50000, stacks="python")
    tagger = Tagger().cuda()
    optimizer = torch.optim.SGD(tagger.parameters(), lr=0.1, momentum=0.9)
    corpus = make_corpus(128 * 14)
    for n, (words, lengths, tags) in enumerate(iterate_minibatches(corpus, 128)):
        words, tags = words.cuda(), tags.cuda()
        tagger.zero_grad()
        scores = tagger(words)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), tags.flatten())
        loss.backward()
        optimizer.step()
        if n % 5 == 0:
            print(n, tuple(words.shape), loss.item())
    torch.cuda.memory._dump_snapshot(path)


if __name__ == "__main__":
    main(sys.argv[1])
