"""Batched text generation with a static key-value cache."""
import sys

import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=16000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=6,
    num_attention_heads=16, num_key_value_heads=16, max_position_embeddings=1024)
model = LlamaForCausalLM(config).to("cuda", torch.bfloat16).eval()
torch.cuda.memory._record_memory_history(max_entries=200000)
generation_config = GenerationConfig(
    max_new_tokens=96, do_sample=False, pad_token_id=0, eos_token_id=None, disable_compile=True,
)
prompts = torch.randint(1, 16000, (64, 256), device="cuda")
out = model.generate(prompts, attention_mask=torch.ones_like(prompts), generation_config=generation_config)
print(out.shape)
torch.cuda.memory._dump_snapshot(sys.argv[1])
