"""Hand-written fine-tuning loop around a Llama with gradient checkpointing."""
import sys

import torch
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM, get_linear_schedule_with_warmup


def build(device):
    config = LlamaConfig(
        vocab_size=32000, hidden_size=512, intermediate_size=1408, num_hidden_layers=6,
        num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=512,
    )
    model = LlamaForCausalLM(config).to(device=device, dtype=torch.bfloat16)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.config.use_cache = False
    return model


def main(path):
    device = "cuda"
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    model = build(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, fused=True)
    num_epochs = 2
    tokens = torch.randint(0, 32000, (16 * 4, 512))
    train_dataloader = DataLoader([{"input_ids": t} for t in tokens], batch_size=16, shuffle=True)
    lr_scheduler = get_linear_schedule_with_warmup(optimizer, 1, num_epochs * len(train_dataloader))
    model.train()
    for epoch in range(num_epochs):
        total_loss = 0
        for step, batch in enumerate(train_dataloader):
            batch = {k: v.to(device) for k, v in batch.items()}
            outputs = model(**batch, labels=batch["input_ids"])
            loss = outputs.loss
            total_loss += loss.detach().float()
            loss.backward()
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
        print(f"{epoch=}: train_loss={total_loss.item() / len(train_dataloader):.4f}")
    torch.cuda.memory._dump_snapshot(path)


if __name__ == "__main__":
    main(sys.argv[1])
