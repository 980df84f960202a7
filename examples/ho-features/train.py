"""Extract features of a whole data set, then a nearest-neighbour check."""
import sys

import timm
import torch
import torch.nn.functional as F

torch.cuda.memory._record_memory_history(max_entries=100000)
model = timm.create_model("vit_small_patch16_224", pretrained=False, num_classes=0).cuda().eval()
loader = [torch.rand(96, 3, 224, 224) for _ in range(10)]
features = []

with torch.no_grad():
    for images in loader:
        tokens = model.forward_features(images.cuda(non_blocking=True))
        features.append(tokens.half().cpu())

features = torch.cat(features)[:, 0].float().cuda()
sim = F.normalize(features, dim=1) @ F.normalize(features, dim=1).T
print(sim.topk(6, dim=1).indices[:, 1:].float().mean().item())
torch.cuda.memory._dump_snapshot(sys.argv[1])
