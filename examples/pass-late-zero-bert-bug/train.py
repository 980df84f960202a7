"""Profile one training step of the intent classifier (after warm-up) with the CUDA memory snapshot."""
import torch
import torch.nn as nn

HIDDEN, LAYERS, HEADS, VOCAB = 768, 10, 12, 20000


class IntentClassifier(nn.Module):
    def __init__(self, num_labels=150):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        layer = nn.TransformerEncoderLayer(HIDDEN, HEADS, 4 * HIDDEN, dropout=0.1, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.classifier = nn.Linear(HIDDEN, num_labels)

    def forward(self, ids):
        h = self.encoder(self.embed(ids))
        return self.classifier(h[:, 0])


def get_batch(bs=8, length=128):
    return torch.randint(0, VOCAB, (bs, length), device="cuda"), torch.randint(0, 150, (bs,), device="cuda")


model = IntentClassifier().cuda().train()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)


def train_step():
    ids, labels = get_batch()
    outputs = model(ids)
    loss = criterion(outputs, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


for _ in range(4):  # warm-up
    train_step()
torch.cuda.synchronize()

torch.cuda.memory._record_memory_history(max_entries=100_000)
train_step()
torch.cuda.synchronize()
torch.cuda.memory._dump_snapshot("intent_step.pickle")
torch.cuda.memory._record_memory_history(enabled=None)
