import sys
import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

BETA = 0.1


def logps(logits, labels, mask):
    lp = logits[:, :-1].float().log_softmax(-1)
    lp = lp.gather(-1, labels[:, 1:, None]).squeeze(-1)
    return (lp * mask[:, 1:]).sum(-1)


class DPO:
    def __init__(self, model, lr=1e-4):
        self.model = model
        self.opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr)

    def step(self, ids, mask):
        """ids: (2B, L), first half chosen, second half rejected."""
        with self.model.disable_adapter():
            ref_out = self.model(input_ids=ids)
            ref = logps(ref_out.logits, ids, mask).detach()

        out = self.model(input_ids=ids)
        pol = logps(out.logits, ids, mask)
        diff = (pol - ref).chunk(2)
        loss = -F.logsigmoid(BETA * (diff[0] - diff[1])).mean()
        loss.backward()
        self.opt.step()
        self.opt.zero_grad()
        return loss.item(), (diff[0] > diff[1]).float().mean().item()


def main():
    torch.manual_seed(0)
    cfg = LlamaConfig(vocab_size=4096, hidden_size=768, intermediate_size=2048, num_hidden_layers=6,
                      num_attention_heads=12, num_key_value_heads=4, use_cache=False)
    base = LlamaForCausalLM(cfg).to("cuda", torch.bfloat16)
    base.enable_input_require_grads()          # needed once gradient checkpointing is turned on
    model = get_peft_model(base, LoraConfig(r=8, target_modules=["q_proj", "v_proj"], lora_alpha=16))
    trainer = DPO(model)
    torch.cuda.memory._record_memory_history(context="all", stacks="python")
    for i in range(8):
        ids = torch.randint(0, 4096, (8, 384), device="cuda")
        mask = torch.ones_like(ids)
        mask[:, :64] = 0
        loss, acc = trainer.step(ids, mask)
    print(loss, acc)
    torch.cuda.memory._dump_snapshot(sys.argv[1])


main()
