import torch
import torch.nn as nn
import torch.nn.functional as F


def basic(i, o, s):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())


class ConvNet(nn.Module):
    def __init__(self, width, depth, classes=100):
        super().__init__()
        layers = [basic(3, width, 1)]
        for stage in range(3):
            for i in range(depth):
                cin = width * 2 ** max(0, stage - (i == 0)) if stage else width
                layers.append(basic(cin, width * 2**stage, 2 if i == 0 and stage else 1))
        self.features = nn.Sequential(*layers)
        self.fc = nn.Linear(width * 4, classes)

    def forward(self, x):
        return self.fc(self.features(x).mean((2, 3)))


teacher, student = ConvNet(96, 4).cuda(), ConvNet(24, 2).cuda()
teacher.eval()
opt = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)
tau, alpha = 4.0, 0.9

for step in range(3):
    if step == 2:
        torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    x, y = torch.rand(128, 3, 32, 32, device="cuda"), torch.randint(0, 100, (128,), device="cuda")
    t_logits = teacher(x)
    soft = F.softmax(t_logits.detach() / tau, dim=1)
    s_logits = student(x)
    kd = F.kl_div(F.log_softmax(s_logits / tau, dim=1), soft, reduction="batchmean") * tau**2
    loss = alpha * kd + (1 - alpha) * F.cross_entropy(s_logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    agree = (t_logits.argmax(1) == s_logits.argmax(1)).float().mean()
    print(f"step {step} loss {loss.item():.3f} agreement {agree.item():.2f}")
torch.cuda.memory._dump_snapshot("kd_step.pickle")
