"""What small operators compute, where there is no GPU.

Programs decide by values: a loop ends when a sequence does, a mask selects rows, a loss that is not finite is skipped. What
they read is small, and so is what it is computed from. Device memory is host memory there, so small operators are carried
out on CPU views of it; what large ones would compute is unknown (`known`), and zero where it can be read. Memory is allocated
by PyTorch's CUDA operators all the same: only results are filled in, and sizes that hang on values (`nonzero`) are taken
from the CPU.

What is asked of unknown values holds: `all` is true and `any` is false, solvers succeed, so that a program's checks pass, and
its loops end. Which of them is the largest is left to chance. A single number is as good as zero but not zero, for a program
takes its logarithm.

PyTorch calls this as the kernels of a dispatch key that nothing else uses, above autograd and all the others. A
`TorchDispatchMode` would be simpler and change the program: formulas of backward passes choose other operators where one is
entered, and every tensor that autograd keeps would get a Python object, which moves the collection of garbage.

Always: stacks show nothing of this (`without_us`), the script's random numbers are its own, and an operator that the CPU
has not is left out.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.cuda import is_current_stream_capturing
from torch.utils._pytree import tree_flatten, tree_map

from .descent import COMPARES, Descent, is_asked
from .known import Known, address_of
from .operators import (
    CHECKS_SOLVER,
    CHOOSES,
    COPIES,
    HOLDS,
    OVERWRITES,
    READS,
    SIZED,
    Function,
    chosen_among,
    has_kernel,
    has_tensors,
    is_passed_over,
)

#: Elements of a tensor that is computed with: of whole and truth values, which index, count and mask, and of others, which
#: do so rarely. Where each element is looked at once, also others are read as far as whole ones.
MOST_WHOLE = 1 << 22
MOST_OTHERS = 1 << 14
#: Work and bytes for larger results, in all. They are computed as long as both last, everything that they are made from is known,
#: and each element is looked at once: masks and labels are made of whole values, of any size, and of others alike. An element is
#: a nanosecond, and what is written takes memory.
MOST_WORK = 1 << 34
MOST_WRITTEN = 2 << 30
#: Bytes of a copy to the device that is made (`standin/copy.rs`).
MOST_TO_DEVICE = 16 << 20

#: The key, which PyTorch keeps for tests of its dispatcher.
KEY = "TESTING_ONLY_GenericMode"
#: What an unknown number is where a script may read it: as good as zero, but with a logarithm and a reciprocal. A type in which
#: it would be zero has the next one.
JUST_ABOVE_ZERO = (1e-30, 1e-7)
#: The steps by which what is chosen by chance goes through a prime.
SPREAD, PRIME = 1_103_515_245, (1 << 31) - 1
#: Kinds of tensors whose memory is theirs alone.
PLAIN = (Tensor, nn.Parameter)


def _tensors(values: Any) -> list[Any]:
    return [value for value in tree_flatten(values)[0] if isinstance(value, Tensor)]


def _is_plain(tensor: Any) -> bool:
    # Inside `torch.func` a tensor stands for another one, and has no memory of its own.
    return type(tensor) in PLAIN and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def _is_other(tensor: Any) -> bool:
    """Whether values are neither whole numbers nor true or false."""
    return bool(tensor.dtype.is_floating_point or tensor.dtype.is_complex)


def _is_small(tensor: Any, most_others: int = MOST_OTHERS) -> bool:
    return _is_plain(tensor) and tensor.numel() <= (most_others if _is_other(tensor) else MOST_WHOLE)


def _view(tensor: Any) -> Any:
    """The memory of a tensor, as a tensor of the CPU."""
    storage = tensor.untyped_storage()
    count = storage.nbytes() // tensor.element_size()
    if not count or not storage.data_ptr():
        return torch.empty(tensor.shape, dtype=tensor.dtype)
    memory = (ctypes.c_char * (count * tensor.element_size())).from_address(storage.data_ptr())
    flat = torch.frombuffer(memory, dtype=torch.uint8).view(tensor.dtype)
    return torch.as_strided(flat, tensor.shape, tensor.stride(), tensor.storage_offset())


def _on_cpu(value: Any) -> Any:
    if isinstance(value, Tensor):
        return _view(value) if value.is_cuda else value.detach()
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return None if type(value).__name__ == "Generator" else value


class Values:
    """Fills results in, from the moment at which it begins."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._key = torch._C._dispatch_key_parse(KEY)
        self._kernels: list[Any] = []
        #: Where random numbers on the device have got to.
        self._random: Any = None
        self._worked = 0
        self._written = 0
        self._descent = Descent()
        #: How many choices were left to chance.
        self._chosen = 0

    def begin(self) -> None:
        """Has PyTorch call this for every operator of this thread, and of the backward passes that it begins."""
        everything = torch._C._dispatch_library("IMPL", "_", KEY)
        everything.fallback_fallthrough(KEY)
        ours = torch._C._dispatch_library("IMPL", "aten", KEY)
        cuda = torch._C._dispatch_library("IMPL", "aten", "CUDA")
        sparse = torch._C._dispatch_library("IMPL", "aten", "SparseCUDA")
        # Kept: what a library registers ends with it.
        self._kernels += [everything, ours, cuda, sparse]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for schema in torch._C._jit_get_all_schemas():
                space, _, name = schema.name.partition("::")
                if space != "aten" or not has_tensors(schema):
                    continue
                full = f"{name}.{schema.overload_name}" if schema.overload_name else name
                function = Function(name, schema)
                if name in SIZED and has_kernel(schema, "CUDA"):
                    cuda.impl(full, "CUDA", functools.partial(self._sized, function))
                if name == CHECKS_SOLVER:
                    # From inside other kernels, whose results are nobody's: there is nothing to look at.
                    cuda.impl(full, "CUDA", _passed)
                    ours.impl(full, KEY, functools.partial(self._checked, function))
                    continue
                if name == "equal":
                    ours.impl(full, KEY, functools.partial(self._equal, function))
                    continue
                if name == "_coalesce":
                    sparse.impl(full, "SparseCUDA", functools.partial(self._coalesced, function))
                if not is_passed_over(name, schema):
                    ours.impl(full, KEY, functools.partial(self._called, function))
        torch._C._dispatch_tls_set_dispatch_key_included(self._key, True)

    def _called(self, function: Function, *args: Any, **kwargs: Any) -> Any:
        # What is made in here and gone again must not bring the script's next collection of garbage forward.
        collects = gc.isenabled()
        gc.disable()
        exclude = torch._C._dispatch_tls_set_dispatch_key_excluded
        exclude(self._key, True)
        try:
            return self._call(function, args, kwargs)
        finally:
            exclude(self._key, False)
            if collects:
                gc.enable()

    def _call(self, function: Function, args: Any, kwargs: Any) -> Any:
        if is_current_stream_capturing():
            return function.overload(*args, **kwargs)
        name, given = function.name, _tensors((args, kwargs))
        is_known = self._known.are(given[1:] if name in OVERWRITES else given)
        if not is_known and name in READS:
            self._known.read()
            if given[0].is_floating_point() and is_asked():
                return self._descent.loss()
        result = function.overload(*args, **kwargs)
        results = _tensors(result) or _tensors([args[place] for place in function.written if place < len(args)])
        if any(tensor.is_cuda for tensor in results):
            is_worth_it = is_known and self._is_worth_it(function, given, results)
            is_small = is_worth_it or all(map(_is_small, results))
            with torch.no_grad():
                made = self._made(function, args, kwargs, results, is_worth_it) if is_small else []
                for tensor, value in zip(results, made or [None] * len(results)):
                    # Of several results some may be small, which are not left as they are found.
                    if tensor.is_cuda and (is_small or _is_small(tensor)):
                        _put(tensor, value, given, is_known and bool(made))
                if not is_known and name in CHOOSES:
                    self._spread(name, args, kwargs, results)
            is_known = is_known and (bool(made) or _is_moved(name, given, results))
        elif not is_known and name in COPIES and _is_small(results[0]):
            self._known.read()
        if name in HOLDS and not is_known and _is_small(results[0]):
            _view(results[0]).fill_(HOLDS[name])
        if not is_known and name in COMPARES and results[0].numel() == 1 and is_asked():
            _view(results[0]).fill_(Descent.holds(name, args[1]))
        self._known.note(results, is_known)
        return result

    def _spread(self, name: str, args: Any, kwargs: Any, results: list[Any]) -> None:
        """Which of several unknown values an operator chose: another one each time, as by chance, so that experts, codes and
        neighbours are all chosen, as on a GPU. Several of one row are different ones."""
        chosen, count, dimension = chosen_among(name, args, kwargs, results)
        if chosen is None or not count or not chosen.numel() or not (chosen.is_cuda and _is_small(chosen)):
            return
        view = _view(chosen)
        is_several = dimension is not None and 0 < view.dim() == args[0].dim()
        rows = view.movedim(dimension, -1) if is_several else view.unsqueeze(-1)
        count_of_rows = rows.numel() // rows.shape[-1]
        first = torch.arange(self._chosen, self._chosen + count_of_rows, device="cpu")
        self._chosen = (self._chosen + count_of_rows) % PRIME
        first.mul_(SPREAD).remainder_(PRIME).remainder_(count)
        places = first.unsqueeze(1) + torch.arange(rows.shape[-1], device="cpu")
        rows.copy_(places.remainder_(count).view(rows.shape))

    def _is_worth_it(self, function: Function, given: list[Any], results: list[Any]) -> bool:
        """Whether results are computed although they are not small."""
        if not function.looks_once or function.is_random or not all(map(_is_plain, (*given, *results))):
            return False
        # What is large and not whole is a model's, and used up by kernels that are not carried out.
        if not all(_is_small(one, MOST_WHOLE) or not _is_other(one) for one in (*given, *results)):
            return False
        work = sum(one.numel() for one in (*given, *results))
        written = sum(one.numel() * one.element_size() for one in results)
        if self._worked + work > MOST_WORK or self._written + written > MOST_WRITTEN:
            return False
        self._worked += work
        self._written += written
        return True

    def _made(self, function: Function, args: Any, kwargs: Any, results: list[Any], is_worth_it: bool) -> list[Any]:
        """What results hold, if it is little work to compute it."""
        most = MOST_WHOLE if function.looks_once else MOST_OTHERS
        if not is_worth_it and not all(_is_small(one, most) for one in _tensors((args, kwargs))):
            return []
        try:
            return _tensors(self._computed(function, args, kwargs)) or results
        except Exception:
            # An operator that the CPU has not.
            return []

    def _computed(self, function: Function, args: Any, kwargs: Any) -> Any:
        """What the CPU makes of it."""
        state = torch.get_rng_state() if function.is_random else None
        if state is not None and self._random is not None:
            torch.set_rng_state(self._random)
        try:
            return function.overload(*tree_map(_on_cpu, args), **tree_map(_on_cpu, kwargs))
        finally:
            if state is not None:
                self._random = torch.get_rng_state()
                torch.set_rng_state(state)

    def _sized(self, function: Function, *args: Any, **kwargs: Any) -> Any:
        """Results whose sizes hang on values."""
        given = _tensors((args, kwargs))
        is_known = self._known.are(given)
        if not is_known:
            self._known.read()
        to_device = functools.partial(_to_device, device=given[0].device)
        results = tree_map(to_device, self._computed(function, args, kwargs))
        self._known.note(_tensors(results), is_known)
        return results

    def _checked(self, function: Function, info: Any, *args: Any, **kwargs: Any) -> None:
        """Whether a solver succeeded: it did, where that is unknown."""
        if not info.is_cuda:
            # Its own kernel; ours would be asked once more.
            torch._C._dispatch_tls_set_dispatch_key_excluded(self._key, True)
            try:
                function.overload(info, *args, **kwargs)
            finally:
                torch._C._dispatch_tls_set_dispatch_key_excluded(self._key, False)
        elif self._known.are([info]):
            self._checked(function, _view(info), *args, **kwargs)

    def _equal(self, function: Function, left: Any, right: Any) -> bool:
        """Whether two tensors hold the same: the one question whose answer is no tensor. It holds where that is unknown."""
        answer = self._called(function, left, right)
        if not (left.is_cuda and right.is_cuda) or left.shape != right.shape:
            return bool(answer)
        if not self._known.are([left, right]):
            self._known.read()
            return True
        is_looked_at = all(_is_small(one, MOST_WHOLE) for one in (left, right))
        return not is_looked_at or torch.equal(_view(left), _view(right))

    def _coalesced(self, function: Function, tensor: Any) -> Any:
        """A sparse tensor whose places are there once: how many those are hangs on values. What is allocated is what PyTorch's
        operator allocates (`SparseCUDATensor.cu`): three numbers a place, and two more while they are sorted."""
        places, values = tensor._indices(), tensor._values().contiguous()
        dimensions, count = places.shape
        flat, *numbers = [places.new_empty(count) for _ in range(3)]
        places.new_empty(2 * count)
        once = _view(places).unique() if dimensions == 1 else _view(places).unique(dim=1)
        rows = values.new_empty((once.shape[-1], *values.shape[1:]))
        flat.resize_((1, once.shape[-1]))
        left = flat if dimensions == 1 else places.new_empty(once.shape)
        _view(left).copy_(once)
        del flat, numbers
        return torch.sparse_coo_tensor(left, rows, tensor.shape, is_coalesced=True)


def _to_device(value: Any, device: Any) -> Any:
    return value.to(device) if isinstance(value, Tensor) else value


def _is_moved(name: str, given: list[Any], results: list[Any]) -> bool:
    """Whether the stand-in copies the values by itself: between host and device, as they are."""
    if name not in COPIES:
        return False
    source, target = given[-1], results[0]
    is_same = source.dtype == target.dtype and source.is_cuda != target.is_cuda
    return bool(is_same and (source.is_cuda or source.numel() * source.element_size() <= MOST_TO_DEVICE))


def _put(result: Any, value: Any, given: list[Any], is_known: bool) -> None:
    """Gives a result its values, if it has not got them: next to zero where there are none."""
    view = _view(result)
    if any(size > 1 and not stride for size, stride in zip(view.shape, view.stride())):
        # A view of something that was expanded.
        return
    is_new = address_of(result) not in map(address_of, given)
    if value is None:
        if is_new and result.numel() <= MOST_OTHERS:
            view.zero_()
    elif is_new and result.shape == value.shape:
        view.copy_(value)
    if not is_known and view.dtype.is_floating_point:
        # Of zeros that stand for what is unknown.
        view.nan_to_num_(0, 0, 0)
        if is_new and view.numel() == 1:
            _lift(view)


def _lift(number: Any) -> None:
    """Makes an unknown number that came out as zero a little more: no script reads zero there on a GPU."""
    for least in JUST_ABOVE_ZERO:
        if not number.any():
            number.fill_(least)


def _passed(*_args: Any, **_kwargs: Any) -> None:
    """A check that holds."""


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
