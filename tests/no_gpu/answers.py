"""What a program reads back where there is no GPU: its own checks pass, numbers that nothing computed can be used, and solvers succeed. Ends with
exit status 0 where all of it holds. Recorded by `.ci/answers.py`."""

import math

import torch
from torch.nn import functional

assert torch.cuda.is_available()
device = torch.device("cuda")


def unknown(*shape: int) -> torch.Tensor:
    """Numbers that a large matrix product gave."""
    left = torch.randn(shape[0], 4096, device=device)
    return left @ torch.randn(4096, math.prod(shape[1:]), device=device).view(4096, -1)


# An unknown loss has a logarithm and a reciprocal, and is still as good as zero; a known zero is zero.
loss = functional.mse_loss(unknown(512, 512), torch.rand(512, 512, device=device))
assert -10 * math.log10(loss.item()) > 0
assert 0 < loss.item() < 1e-6
assert torch.zeros_like(loss).item() == 0
assert torch.zeros((), device=device).item() == 0
assert math.log(unknown(512, 512).half().mean().item()) < 0

# A scaler that nothing told of an overflow makes its steps.
weight = torch.nn.Parameter(torch.randn(512, 512, device=device))
scaler, optimizer = torch.amp.GradScaler("cuda"), torch.optim.SGD([weight], lr=0.1)
steps = []
optimizer.register_step_post_hook(lambda *_: steps.append(1))
scaler.scale((weight @ weight).mean()).backward()
scaler.step(optimizer)
scaler.update()
assert steps == [1], "the step was left out"

# Solvers succeed on what is unknown, of any size, and fail on what is known to be singular.
for size in (8, 300):
    matrix = unknown(4, size * size).view(4, size, size)
    torch.linalg.solve(matrix, torch.ones(4, size, 1, device=device))
    torch.linalg.inv(matrix)
    torch.linalg.cholesky(matrix)
    torch.linalg.eigh(matrix)
    torch.linalg.svd(matrix)
try:
    torch.linalg.inv(torch.zeros(4, 4, device=device))
    raise AssertionError("a matrix of zeros was inverted")
except torch.linalg.LinAlgError:
    pass
inverse = torch.linalg.inv(2 * torch.eye(4, device=device))
assert torch.equal(inverse.cpu(), torch.eye(4) / 2)

# Windows of a spectrogram, whose sum is checked: more numbers than are computed otherwise.
window = torch.hann_window(512, device=device)
spectrum = torch.stft(torch.randn(24, 32000, device=device), 512, 128, window=window, return_complex=True)
assert torch.istft(spectrum, 512, 128, window=window, length=32000).shape == (24, 32000)

# What is expanded is not written to.
expanded = torch.rand(1, 64, 64, device=device).expand(4, -1, -1)
functional.mse_loss(unknown(4, 64 * 64).view(4, 64, 64), expanded)
assert [len(part) for part in torch.broadcast_tensors(unknown(4, 64), torch.ones(64, device=device))] == [4, 4]

# Whether two tensors are equal, also where memory holds something else.
for filled in (0, 1):
    torch.full((1 << 20,), filled, dtype=torch.bool, device=device)
    one, other = torch.arange(1 << 20, device=device), torch.arange(1 << 20, device=device)
    assert torch.equal(one, other)
    assert not torch.equal(one, other + 1)
    assert torch.equal(unknown(64, 64), unknown(64, 64))

# Kernels that PyTorch compiles while it runs.
assert torch.gcd(torch.tensor([12, 18], device=device), torch.tensor([8, 27], device=device)).tolist() == [4, 9]
torch.special.bessel_j0(torch.rand(1 << 20, device=device))
torch.distributions.Dirichlet(torch.ones(64, 1024, device=device)).entropy()

# Whether a spread is one, which is asked of each before anything is drawn.
for rows in (4, 1 << 18):
    spread = torch.distributions.Normal(unknown(rows, 8), torch.nn.functional.softplus(unknown(rows, 8)) + 1e-3)
    assert spread.sample().shape == (rows, 8)

# Masks of any size, made of whole numbers, select what they select.
rows = torch.arange(3000, device=device)
assert (rows.unsqueeze(0) == rows.unsqueeze(1)).nonzero().shape == (3000, 2)

# Which of many unknown values is the largest is left to chance: not always the same one, and of one row different ones.
assert len(unknown(64, 1000).argmax(dim=1).unique()) > 8
experts = unknown(64, 1000).topk(2, dim=1).indices
assert experts.max() < 1000
assert (experts[:, 0] != experts[:, 1]).all()

# L-BFGS is on its way: of three evaluations a step two iterations come, and each but the very
# first is remembered, whatever the tolerances, and also below a default device.
for device_by_default in (None, "cuda"):
    torch.set_default_device(device_by_default)
    weight = torch.nn.Parameter(torch.randn(512, 512, device=device))
    descent = torch.optim.LBFGS([weight], max_iter=3, history_size=40, tolerance_grad=0, tolerance_change=0)

    def closure(weight: torch.Tensor = weight, descent: torch.optim.LBFGS = descent) -> torch.Tensor:
        descent.zero_grad()
        loss = (weight @ weight).square().mean()
        loss.backward()
        return loss

    for _ in range(3):
        descent.step(closure)
    assert len(descent.state[weight]["old_dirs"]) == 5
torch.set_default_device(None)
