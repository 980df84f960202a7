"""Fine-tune a small ViT with the Hugging Face Trainer; augmentation happens in the collator, on the GPU."""
import sys
import tempfile

import torch
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification

from data import GpuAugment, make_photos

SIZE, CLASSES, BATCH, STEPS = 160, 50, 48, 14


def build_model():
    config = ViTConfig(
        image_size=SIZE, patch_size=16, hidden_size=384, num_hidden_layers=6,
        num_attention_heads=6, intermediate_size=1536, num_labels=CLASSES,
    )
    return ViTForImageClassification(config)


def main(out):
    torch.cuda.memory._record_memory_history(max_entries=200000, stacks="python")
    collate = GpuAugment()
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=BATCH,
            max_steps=STEPS,
            learning_rate=3e-4,
            weight_decay=0.05,
            logging_steps=7,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            remove_unused_columns=False,
            dataloader_pin_memory=False,
        )
        trainer = Trainer(
            model=build_model(),
            args=args,
            data_collator=collate,
            train_dataset=make_photos(BATCH * STEPS, SIZE, CLASSES),
        )
        trainer.train()
    before, after = collate.panel[-1]
    print("last pair:", before[0].mean().item(), after[0].mean().item())
    torch.cuda.memory._dump_snapshot(out)


if __name__ == "__main__":
    main(sys.argv[1])
