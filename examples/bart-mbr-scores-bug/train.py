"""Candidate sampling for minimum-Bayes-risk headline selection with a small BART.

Draws several candidates per article, then picks, per article, the candidate that agrees
most with the others. Usage: python train.py OUT.pickle
"""
import sys
from dataclasses import dataclass

import torch
from transformers import BartConfig, BartForConditionalGeneration

VOCAB = 24000


@dataclass
class Settings:
    articles: int = 24
    article_len: int = 64
    candidates: int = 4
    headline_len: int = 12
    batches: int = 7


def article_batches(cfg, device):
    gen = torch.Generator().manual_seed(0)
    for _ in range(cfg.batches):
        ids = torch.randint(5, VOCAB, (cfg.articles, cfg.article_len), generator=gen)
        yield {"input_ids": ids.to(device), "attention_mask": torch.ones_like(ids).to(device)}


class CandidateSampler:
    def __init__(self, model, cfg):
        self.model, self.cfg = model.eval(), cfg

    def sample(self, batch):
        return self.model.generate(
            **batch,
            do_sample=True,
            top_k=0,
            num_return_sequences=self.cfg.candidates,
            min_new_tokens=self.cfg.headline_len,
            max_new_tokens=self.cfg.headline_len,
            decoder_start_token_id=2,
            output_scores=True,
            return_dict_in_generate=True,
        )

    def run(self, batches):
        collected = []
        for n, batch in enumerate(batches):
            out = self.sample(batch)
            collected.append(out)
            print(f"batch {n}: {tuple(out.sequences.shape)}")
        return collected


def agreement(sequences, candidates):
    s = sequences.view(-1, candidates, sequences.size(-1))
    same = (s[:, :, None] == s[:, None]).float().mean(-1)
    return same.sum(-1).argmax(-1)


def main(path):
    torch.manual_seed(11)
    cfg = Settings()
    model = BartForConditionalGeneration(
        BartConfig(
            vocab_size=VOCAB, d_model=256, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=1024, decoder_ffn_dim=1024, max_position_embeddings=128,
        )
    ).cuda()
    torch.cuda.memory._record_memory_history(max_entries=150000, stacks="python")
    results = CandidateSampler(model, cfg).run(article_batches(cfg, "cuda"))
    torch.cuda.memory._dump_snapshot(path)
    best = torch.cat([agreement(r.sequences, cfg.candidates) for r in results])
    print("candidate histogram", torch.bincount(best, minlength=cfg.candidates).tolist())


if __name__ == "__main__":
    main(sys.argv[1])
