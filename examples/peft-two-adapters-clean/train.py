"""One frozen base model, two LoRA adapters (contracts, recipes) trained in turn."""
import sys

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

VOCAB, LENGTH, BATCH = 8000, 128, 16
DOMAINS = ("contracts", "recipes")


def lora():
    return LoraConfig(
        task_type="CAUSAL_LM", r=16, lora_alpha=32, lora_dropout=0.05,
        target_modules=["q_proj", "v_proj", "up_proj", "down_proj"],
    )


def build():
    base = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCAB, hidden_size=512, intermediate_size=1408, num_hidden_layers=4, num_attention_heads=8,
            num_key_value_heads=4, max_position_embeddings=256,
        )
    )
    model = get_peft_model(base, lora(), adapter_name=DOMAINS[0])
    model.add_adapter(DOMAINS[1], lora())
    return model.cuda()


class AdapterBank:
    def __init__(self, model):
        self.model = model
        self.optimizers = {
            d: torch.optim.AdamW([p for n, p in model.named_parameters() if f".{d}." in n], lr=2e-4) for d in DOMAINS
        }

    def train_batch(self, domain, ids):
        self.model.set_adapter(domain)
        self.model.train()
        loss = self.model(input_ids=ids, labels=ids, use_cache=False).loss
        loss.backward()
        self.optimizers[domain].step()
        self.optimizers[domain].zero_grad()
        return loss.item()

    @torch.no_grad()
    def cross_check(self, ids):
        self.model.eval()
        table = {}
        for domain in DOMAINS:
            self.model.set_adapter(domain)
            table[domain] = self.model(input_ids=ids, labels=ids, use_cache=False).loss.item()
        return table


def text(domain, step):
    g = torch.Generator().manual_seed(100 * DOMAINS.index(domain) + step)
    lo = 0 if domain == "contracts" else VOCAB // 2
    return torch.randint(lo, lo + VOCAB // 2, (BATCH, LENGTH), generator=g).cuda()


def main(path):
    torch.manual_seed(0)
    model = build()
    torch.cuda.memory._record_memory_history(max_entries=150000, stacks="python")
    bank = AdapterBank(model)
    for step in range(12):
        domain = DOMAINS[step % 2]
        loss = bank.train_batch(domain, text(domain, step))
        if step % 6 == 5:
            print(step, f"{loss:.4f}", {k: round(v, 3) for k, v in bank.cross_check(text(domain, 50)).items()})
    torch.cuda.memory._dump_snapshot(path)


if __name__ == "__main__":
    main(sys.argv[1])
