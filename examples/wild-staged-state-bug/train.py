import io
import sys
import threading

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.utils._pytree import tree_map_only


class AsyncCheckpointer:
    """Freezes the state with a fast device copy, a thread moves it to the host and serialises it."""

    def __init__(self, keep=2):
        self.keep = keep
        self.files = {}
        self.thread = None
        self.staged = None

    def save(self, step, model, optim):
        self.wait()
        state = dict(zip(("model", "optim"), get_state_dict(model, optim)))
        self.staged = tree_map_only(torch.Tensor, lambda t: t.detach().clone(), state)
        self.thread = threading.Thread(target=self._write, args=(step,), daemon=True)
        self.thread.start()

    def _write(self, step):
        buf = io.BytesIO()
        torch.save(tree_map_only(torch.Tensor, torch.Tensor.cpu, self.staged), buf)
        self.files[step] = buf.tell()
        for old in sorted(self.files)[:-self.keep]:
            del self.files[old]

    def wait(self):
        if self.thread is not None:
            self.thread.join()
            self.thread = None


class Net(nn.Module):
    def __init__(self, d=896, n=6):
        super().__init__()
        layer = nn.TransformerEncoderLayer(d, 14, 3 * d, dropout=0.0, batch_first=True, norm_first=True, activation="gelu")
        self.inp, self.body, self.out = nn.Linear(64, d), nn.TransformerEncoder(layer, n, enable_nested_tensor=False), nn.Linear(d, 64)

    def forward(self, x):
        return self.out(self.body(self.inp(x)))


def main():
    torch.cuda.memory._record_memory_history(max_entries=100000)
    net = Net().cuda()
    opt = torch.optim.AdamW(net.parameters(), 2e-4, fused=True)
    saver = AsyncCheckpointer()
    for step in range(1, 17):
        x = torch.randn(16, 128, 64, device="cuda")
        opt.zero_grad()
        loss = F.l1_loss(net(x), x.roll(1, 1))
        loss.backward()
        opt.step()
        if step % 5 == 0:
            saver.save(step, net, opt)
    saver.wait()
    print(loss.item(), saver.files)
    torch.cuda.memory._dump_snapshot(sys.argv[1])


if __name__ == "__main__":
    main()
