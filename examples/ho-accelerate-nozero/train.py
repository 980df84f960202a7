"""ViT fine-tuning with Accelerate, accumulate() and gather_for_metrics()."""
import sys

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset
from transformers import ViTConfig, ViTForImageClassification, get_cosine_schedule_with_warmup


def get_dataloaders(batch_size):
    def make(n):
        return TensorDataset(torch.rand(n, 3, 128, 128), torch.randint(0, 50, (n,)))
    return DataLoader(make(batch_size * 8), batch_size=batch_size, shuffle=True), DataLoader(make(batch_size * 2), batch_size=batch_size)


def training_function(config):
    accelerator = Accelerator(gradient_accumulation_steps=config["accum"], mixed_precision="bf16")
    train_dataloader, eval_dataloader = get_dataloaders(config["batch_size"])
    model = ViTForImageClassification(ViTConfig(
        image_size=128, patch_size=16, hidden_size=768, num_hidden_layers=6, num_attention_heads=12, num_labels=50))
    optimizer = torch.optim.AdamW(params=model.parameters(), lr=config["lr"])
    lr_scheduler = get_cosine_schedule_with_warmup(optimizer, 1, 8)
    model, optimizer, train_dataloader, eval_dataloader, lr_scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, eval_dataloader, lr_scheduler)
    for epoch in range(config["epochs"]):
        model.train()
        for step, (pixel_values, labels) in enumerate(train_dataloader):
            with accelerator.accumulate(model):
                output = model(pixel_values=pixel_values, labels=labels)
                accelerator.backward(output.loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                lr_scheduler.step()
        model.eval()
        correct = total = 0
        for pixel_values, labels in eval_dataloader:
            with torch.no_grad():
                logits = model(pixel_values=pixel_values).logits
            predictions, references = accelerator.gather_for_metrics((logits.argmax(dim=-1), labels))
            correct += (predictions == references).sum().item()
            total += len(references)
        accelerator.print(f"epoch {epoch}: {correct / total:.3f}")


def main():
    torch.cuda.memory._record_memory_history(max_entries=200000)
    training_function({"lr": 2e-4, "epochs": 2, "batch_size": 32, "accum": 2})
    torch.cuda.memory._dump_snapshot(sys.argv[1])


if __name__ == "__main__":
    main()
