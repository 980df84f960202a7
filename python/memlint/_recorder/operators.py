"""PyTorch's operators, as far as small values are computed: which hang on values, which move or overwrite them, and which are
made of others. Names are those of its schemas (`native_functions.yaml`)."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Optional

import torch

#: Operators whose result's size hangs on values. PyTorch's other operators call them, too, so it is their kernels that are ours.
SIZED = {"nonzero", "_unique2", "unique_dim", "unique_consecutive", "bincount", "repeat_interleave"}
#: Operators that compute nothing, and views.
WITHOUT = {
    "empty",
    "empty_strided",
    "empty_like",
    "new_empty",
    "new_empty_strided",
    "lift_fresh",
    "set_",
    "_unsafe_view",
}
WITHOUT |= {"record_stream", "resize_", "is_pinned", "_pin_memory", "requires_grad_", "detach_", "as_strided_"}
WITHOUT |= {"squeeze_", "unsqueeze_", "transpose_", "t_", "swapaxes_", "swapdims_"}
#: Operators made of others that decide by values, hand them out, or give views without saying so: it is these others that are
#: looked at.
MADE_OF_OTHERS = {
    "item",
    "is_nonzero",
    "nonzero_numpy",
    "argwhere",
    "coalesce",
    "allclose",
    "cpu",
    "cuda",
    "multinomial",
    "histc",
    "istft",
    "normal",
    "broadcast_tensors",
    "meshgrid",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
}
# Those that look whether a solver succeeded.
MADE_OF_OTHERS |= {"linalg_solve", "linalg_inv", "inverse", "linalg_cholesky", "linalg_lu_factor", "linalg_ldl_factor"}
#: The operator that looks for all of them, and ends the program where one did not.
CHECKS_SOLVER = "_linalg_check_errors"
#: Operators that hand a value to the script.
READS = {"_local_scalar_dense"}
#: Operators that move values as they are.
COPIES = {"_to_copy", "copy_"}
#: Operators after which a tensor holds nothing of what it held, or that look at nothing but its size.
OVERWRITES = {"copy_", "zero_", "fill_", "normal_", "uniform_", "random_", "bernoulli_"}
OVERWRITES |= {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"}
#: Operators that look at each element once; others of this kind PyTorch marks itself.
ONCE = {
    "all",
    "any",
    "sum",
    "mean",
    "prod",
    "amax",
    "amin",
    "max",
    "min",
    "argmax",
    "argmin",
    "linalg_vector_norm",
    "norm",
}
ONCE |= {
    "eye",
    "tril",
    "triu",
    "arange",
    "linspace",
    "ones",
    "full",
    "_to_copy",
    "clone",
    "cat",
    "stack",
    "repeat",
    "index",
}
# What moves, adds up or sorts elements.
ONCE |= {
    "unfold_backward",
    "im2col",
    "col2im",
    "constant_pad_nd",
    "flip",
    "roll",
    "cumsum",
    "cumprod",
    "sort",
    "argsort",
    "topk",
    "gather",
    "take",
    "index_select",
    "scatter",
    "scatter_add",
    "index_add",
    "bucketize",
    "searchsorted",
}
#: What holds of values that are unknown.
HOLDS = {"all": True, "_is_all_true": True, "any": False, "_is_any_true": False}
#: Operators that say which of several values it is, and where among their arguments the dimension stands.
CHOOSES = {"argmax": 1, "argmin": 1, "max": 1, "min": 1, "topk": 2, "sort": 1, "argsort": 1}
#: Of these, those that go along the last dimension where none is named; the others through all that there is.
ALONG_LAST = {"topk", "sort", "argsort"}


class Function:
    """An operator."""

    def __init__(self, name: str, schema: Any) -> None:
        self.name = name
        self._overload_name = schema.overload_name or "default"
        #: The places of the arguments that it writes to.
        self.written = [
            place
            for place, one in enumerate(schema.arguments)
            if one.alias_info is not None and one.alias_info.is_write
        ]

    @functools.cached_property
    def overload(self) -> Any:
        return getattr(getattr(torch.ops.aten, self.name), self._overload_name)

    @functools.cached_property
    def is_random(self) -> bool:
        return bool(torch.Tag.nondeterministic_seeded in self.overload.tags)

    @functools.cached_property
    def looks_once(self) -> bool:
        return bool(self.name in ONCE or torch.Tag.pointwise in self.overload.tags)


def chosen_among(name: str, args: Any, kwargs: Any, results: list[Any]) -> tuple[Any, int, Optional[int]]:
    """The result in which an operator says what it chose, among how many, and along which dimension, where that is not all."""
    is_alone = name.startswith("arg")
    if not is_alone and len(results) != 2:
        # The largest value alone, or the larger of two.
        return None, 0, None
    place = CHOOSES[name]
    dimension = args[place] if len(args) > place and type(args[place]) is int else kwargs.get("dim")
    if dimension is None and name in ALONG_LAST:
        dimension = -1
    count = args[0].numel() if dimension is None or not args[0].dim() else args[0].size(dimension)
    return results[0 if is_alone else 1], count, dimension


def _types(schema: Any) -> Iterator[str]:
    for one in (*schema.arguments, *schema.returns):
        yield str(one.type)


def has_tensors(schema: Any) -> bool:
    return any("Tensor" in kind for kind in _types(schema))


def has_kernel(schema: Any, key: str) -> bool:
    name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, key))


def is_passed_over(name: str, schema: Any) -> bool:
    """Whether there is nothing to do for an operator: it computes nothing, gives a view, or is made of others."""
    is_view = any(one.alias_info is not None and not one.alias_info.is_write for one in schema.returns)
    is_condition = name == "where" and not schema.overload_name
    return is_view or is_condition or name in WITHOUT or name in MADE_OF_OTHERS
