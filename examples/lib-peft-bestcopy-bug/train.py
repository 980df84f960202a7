import copy
import torch
import torch.nn as nn
from peft import LoraConfig, get_peft_model
from transformers import ViTConfig, ViTForImageClassification


class EarlyStopper:
    def __init__(self, patience=3):
        self.best, self.best_model, self.bad, self.patience = None, None, 0, patience

    def __call__(self, score, model):
        if self.best is None or score > self.best:
            self.best, self.bad = score, 0
            self.best_model = copy.deepcopy(model)
        else:
            self.bad += 1
        return self.bad >= self.patience


def batches(n, bs=16):
    for _ in range(n):
        yield torch.rand(bs, 3, 224, 224).cuda(), torch.randint(0, 37, (bs,)).cuda()


def train_epoch(model, opt, n=4):
    model.train()
    for x, y in batches(n):
        loss = nn.functional.cross_entropy(model(pixel_values=x).logits, y)
        opt.zero_grad()
        loss.backward()
        opt.step()


@torch.no_grad()
def evaluate(model, n=2):
    model.eval()
    hits = [model(pixel_values=x).logits.argmax(1).eq(y).sum().cpu() for x, y in batches(n)]
    return len(hits)


torch.cuda.memory._record_memory_history(max_entries=400000, stacks="python")
vit = ViTForImageClassification(ViTConfig(num_labels=37))
model = get_peft_model(vit, LoraConfig(r=8, target_modules=["query", "value", "q_proj", "v_proj"], modules_to_save=["classifier"])).cuda()
model.print_trainable_parameters()
opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=5e-4)
stop = EarlyStopper()
for epoch in range(3):
    train_epoch(model, opt)
    score = evaluate(model) + (epoch == 0)
    if stop(score, model):
        break
torch.cuda.memory._dump_snapshot("lora_best.pickle")
