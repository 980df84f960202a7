"""Causal LM with the Trainer: gradient accumulation, evaluation with token accuracy."""
import sys
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, default_data_collator


class Blocks(Dataset):
    def __init__(self, n, seed, length=128, vocab=8000):
        g = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(0, vocab, (n, length), generator=g)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i].clone()}


def compute_metrics(eval_preds):
    preds, labels = eval_preds
    preds = np.argmax(preds, -1) if preds.ndim == 3 else preds
    return {"accuracy": float((preds[:, :-1] == labels[:, 1:]).mean())}


def preprocess_logits_for_metrics(logits, labels):
    if isinstance(logits, tuple):
        logits = logits[0]
    return logits.argmax(dim=-1)


def main():
    torch.cuda.memory._record_memory_history(max_entries=200000)
    config = GPT2Config(vocab_size=8000, n_positions=128, n_embd=512, n_layer=4, n_head=8, use_cache=False)
    model = GPT2LMHeadModel(config)
    with tempfile.TemporaryDirectory() as out:
        training_args = TrainingArguments(
            output_dir=out,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=16,
            gradient_accumulation_steps=2,
            max_steps=6,
            eval_strategy="steps",
            eval_steps=3,
            bf16=True,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = Trainer(
            model=model,
            args=training_args,
            train_dataset=Blocks(16 * 12, 0),
            eval_dataset=Blocks(16 * 8, 1),
            data_collator=default_data_collator,
            compute_metrics=compute_metrics,
        )
        trainer.train()
        print(trainer.evaluate())
    torch.cuda.memory._dump_snapshot(sys.argv[1])


if __name__ == "__main__":
    main()
