"""LoRA adapters (peft) on a small Llama in bf16, gradient checkpointing, the frozen base in bf16."""
import sys

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

torch.cuda.memory._record_memory_history(max_entries=5000)
base = LlamaForCausalLM(LlamaConfig(vocab_size=4000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=3, num_attention_heads=16, use_cache=False))
base = base.to("cuda", torch.bfloat16)
base.gradient_checkpointing_enable()
base.enable_input_require_grads()
model = get_peft_model(base, LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj", "up_proj"], task_type="CAUSAL_LM"))
model.print_trainable_parameters()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
model.train()
for step in range(10):
    ids = torch.randint(0, 4000, (8, 256), device="cuda")
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
    print(step, loss.item())
torch.cuda.memory._dump_snapshot(sys.argv[1])
