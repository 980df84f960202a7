"""DDP with PowerSGD gradient compression from the fourth iteration on."""
import sys
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powersgd
from torch.nn.parallel import DistributedDataParallel as DDP


def main(path):
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
    ddp = DDP(model, device_ids=[0])
    state = powersgd.PowerSGDState(process_group=None, matrix_approximation_rank=4, start_powerSGD_iter=4,
                                   use_error_feedback=True, warm_start=True)
    ddp.register_comm_hook(state, powersgd.powerSGD_hook)
    opt = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    for step in range(14):
        x = torch.randn(4096, 512, device="cuda")
        loss = (ddp(x) - x.roll(1, 1)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 5 == 0 and dist.get_rank() == 0:
            print(step, loss.item())
    torch.cuda.memory._dump_snapshot(path)
    dist.destroy_process_group()


torch.cuda.memory._record_memory_history(max_entries=100_000)
main(sys.argv[1])
