"""What small operators compute, where there is no GPU.

Programs decide by values: a loop ends when a sequence does, a mask selects rows, a loss that is not finite is skipped. What
they read is small, and so is what it is computed from. Device memory is host memory there, so small operators are carried
out on CPU views of it; what large ones would compute stays zero, or what was there before. Memory is allocated by PyTorch's
CUDA operators all the same: only results are filled in, and sizes that hang on values (`nonzero`) are taken from the CPU.

Always: stacks show nothing of this (`without_us`), the script's random numbers are its own, and an operator that the CPU
has not is left out.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
from typing import Any

from torch import Tag, Tensor, as_strided, device, empty, frombuffer, get_rng_state, nn, set_rng_state, uint8
from torch.cuda import is_current_stream_capturing
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

#: Elements of a tensor that is computed with: of whole and truth values, which index, count and mask, and of others, which
#: do so rarely.
MOST_WHOLE = 1 << 22
MOST_OTHERS = 1 << 14

#: Operators whose result's size hangs on values; those of `aten` alone, as all below.
SIZED = {"nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "bincount", "repeat_interleave"}
#: Operators that take masks, which select by them.
MASKED = {"index", "index_put_", "_index_put_impl_", "index_put"}
#: Operators that compute nothing.
WITHOUT = {
    "empty",
    "empty_strided",
    "empty_like",
    "new_empty",
    "new_empty_strided",
    "detach",
    "alias",
    "lift_fresh",
    "set_",
}
WITHOUT |= {"_local_scalar_dense", "record_stream", "resize_", "is_pinned", "_pin_memory"}

#: Kinds of tensors whose memory is theirs alone.
PLAIN = (Tensor, nn.Parameter)


def _tensors(values: Any) -> list[Any]:
    return [value for value in tree_flatten(values)[0] if isinstance(value, Tensor)]


def _is_small(tensor: Any) -> bool:
    is_other = tensor.dtype.is_floating_point or tensor.dtype.is_complex
    return type(tensor) in PLAIN and tensor.numel() <= (MOST_OTHERS if is_other else MOST_WHOLE)


def _view(tensor: Any) -> Any:
    """The memory of a tensor, as a tensor of the CPU."""
    storage = tensor.untyped_storage()
    count = storage.nbytes() // tensor.element_size()
    if not count or not storage.data_ptr():
        return empty(tensor.shape, dtype=tensor.dtype)
    memory = (ctypes.c_char * (count * tensor.element_size())).from_address(storage.data_ptr())
    flat = frombuffer(memory, dtype=uint8).view(tensor.dtype)
    return as_strided(flat, tensor.shape, tensor.stride(), tensor.storage_offset())


def _on_cpu(value: Any) -> Any:
    if isinstance(value, Tensor) and value.is_cuda:
        return _view(value)
    if isinstance(value, device) and value.type == "cuda":
        return device("cpu")
    return None if type(value).__name__ == "Generator" else value


def _computed(function: Any, args: Any, kwargs: Any) -> Any:
    """What the CPU makes of it."""
    state = get_rng_state() if Tag.nondeterministic_seeded in function.tags else None
    try:
        return function(*tree_map(_on_cpu, args), **tree_map(_on_cpu, kwargs))
    finally:
        if state is not None:
            set_rng_state(state)


def _selected(mask: Any) -> list[Any]:
    """A mask as the places it selects, on its device."""
    rows = _view(mask) if mask.is_cuda else mask
    return [row.to(mask.device) for row in rows.nonzero(as_tuple=True)]


class Values(TorchDispatchMode):
    """Fills results in, as long as it is entered."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # What is made in here and gone again must not bring the script's next collection of garbage forward.
        collects = gc.isenabled()
        gc.disable()
        try:
            return self._call(function, args, kwargs or {})
        finally:
            if collects:
                gc.enable()

    def _call(self, function: Any, args: Any, kwargs: Any) -> Any:
        space, _, name = function._schema.name.partition("::")
        if space != "aten" or name in WITHOUT or function.is_view or is_current_stream_capturing():
            return function(*args, **kwargs)
        given = _tensors((args, kwargs))
        is_small = all(map(_is_small, given))
        if name in SIZED and is_small and any(tensor.is_cuda for tensor in given):
            made = _computed(function, args, kwargs)
            return tree_map(lambda value: value.to(given[0].device) if isinstance(value, Tensor) else value, made)
        if name in MASKED:
            args = _without_masks(args)
        result = function(*args, **kwargs)
        results = _tensors(result)
        if is_small and all(map(_is_small, results)) and any(tensor.is_cuda for tensor in results):
            with contextlib.suppress(Exception):
                _fill(function, args, kwargs, given, results)
        return result


def _without_masks(args: Any) -> Any:
    places: list[Any] = []
    for index in args[1]:
        is_mask = index is not None and index.dtype.itemsize == 1 and not index.dtype.is_signed and _is_small(index)
        places += _selected(index) if is_mask else [index]
    return (args[0], places, *args[2:])


def _fill(function: Any, args: Any, kwargs: Any, given: list[Any], results: list[Any]) -> None:
    made = _tensors(_computed(function, args, kwargs))
    for result, value in zip(results, made):
        is_given = any(result is tensor for tensor in given)
        if result.is_cuda and not is_given and result.shape == value.shape:
            _view(result).copy_(value)


def without_us(snapshot: Any) -> None:
    """Takes Python's frames from this file inwards out of a snapshot's stacks; those of C++ name operators and stay.

    Frames come innermost first.
    """
    cut: dict[int, Any] = {}
    entries = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    entries += snapshot["segments"] + [event for trace in snapshot["device_traces"] for event in trace]
    for entry in entries:
        frames = entry.get("frames")
        if frames:
            if id(frames) not in cut:
                # The list stays alive with its number.
                cut[id(frames)] = (frames, _outside(frames))
            entry["frames"] = cut[id(frames)][1]


def _outside(frames: list[Any]) -> list[Any]:
    ours = [place for place, frame in enumerate(frames) if frame["filename"] == __file__]
    if not ours:
        return frames
    inner = [frame for frame in frames[: ours[-1]] if not frame["filename"].endswith(".py")]
    return inner + frames[ours[-1] + 1 :]
