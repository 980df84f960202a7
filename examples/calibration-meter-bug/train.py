import sys
import tempfile

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM, Trainer, TrainingArguments

from calibration import CalibrationMeter

VOCAB, LENGTH, BATCH, BATCHES = 8192, 128, 8, 18


class Documents(torch.utils.data.Dataset):
    def __init__(self, n):
        self.ids = torch.randint(0, VOCAB, (n, LENGTH), generator=torch.Generator().manual_seed(3))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i].clone()}


def main(path):
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=VOCAB, hidden_size=256, intermediate_size=704, num_hidden_layers=3,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512, use_cache=False,
        )
    )
    with tempfile.TemporaryDirectory() as tmp:
        trainer = Trainer(
            model=model,
            args=TrainingArguments(
                output_dir=tmp,
                per_device_eval_batch_size=BATCH,
                batch_eval_metrics=True,
                save_strategy="no",
                report_to=[],
                disable_tqdm=True,
            ),
            eval_dataset=Documents(BATCH * BATCHES),
            compute_metrics=CalibrationMeter(),
        )
        torch.cuda.memory._record_memory_history(max_entries=100000, context="all", stacks="python")
        scores = trainer.evaluate()
        torch.cuda.memory._dump_snapshot(path)
    print({k: v for k, v in scores.items() if k.startswith("eval_")})


if __name__ == "__main__":
    main(sys.argv[1])
