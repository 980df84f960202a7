"""A torch without tensors: as much of the real one as the hook meets, with a history that is a list."""

import contextlib
import os

__version__ = os.environ.get("FAKE_TORCH", "2.11.0+cu130")

from . import _C, compiler, cuda, distributed, matrices, nn, optim, utils, version  # noqa: F401

float32 = None
enable_grad = contextlib.nullcontext


def empty(size, device):
    cuda.init()
    return cuda.memory.allocate(size)


def ones(*sizes, dtype, device, requires_grad):
    return matrices.Matrix()


def mebibytes(number):
    """A tensor of this size."""
    return empty(number << 20, "cuda")
