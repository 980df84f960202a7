"""A GPU that is not there: memlint's libraries, loaded before PyTorch's, so that PyTorch finds these and no others.

Which libraries a PyTorch asks for differs from wheel to wheel. This process says where its PyTorch lies, memlint writes the
libraries and answers in a file (`src/record/standin`).
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import json
import os
import time
from typing import Any, Optional

from .ledger import Ledger
from .order import Order

#: Reading a wheel's libraries takes a second; on a machine with much to do many.
PATIENCE = 300.0
#: Between two looks.
PAUSE = 0.01
#: Room for the names of calls: a hundred times what any program was seen to need.
ROOM = 1 << 20

_core: Optional[ctypes.CDLL] = None
_model: dict[str, int] = {}
#: What the program has asked for: that code be `compiled`, that an optimizer make a `step`.
_asked: set[str] = set()


def load(torch: str, order: Order, ledger: Ledger) -> None:
    """Loads the stand-in for the PyTorch of a folder. Where there is none the program ends: memlint says why."""
    global _core, _model
    answer = _ask(torch, order, ledger)
    if answer is None:
        raise SystemExit(2)
    libraries = [ctypes.CDLL(path, mode=os.RTLD_GLOBAL | os.RTLD_NOW) for path in answer["libraries"]]
    _core, _model = libraries[0], dict(order.model or {})
    versions = answer["versions"]
    _core.memlint_configure(
        ctypes.c_uint32(_model["devices"]),
        ctypes.c_uint64(_model["bytes"]),
        ctypes.c_uint32(versions["cuda"]),
        ctypes.c_uint32(versions["cudnn"]),
        ctypes.c_uint32(versions["nccl"]),
    )
    atexit.register(_tell_refused, _core, ledger)
    # Compiled code would be a kernel, which nothing runs; without it the same operators are called one by one.
    os.environ["TORCH_COMPILE_DISABLE"] = "1"
    # What PyTorch compiles itself is nothing here, and would be taken for something where a GPU is.
    os.environ["USE_PYTORCH_KERNEL_CACHE"] = "0"


def _ask(torch: str, order: Order, ledger: Ledger) -> Any:
    path = os.path.join(order.ledger, f"{os.getpid()}-{time.time_ns()}.answer")
    ledger.tell("wheel", torch=torch, answer=path)
    end = time.monotonic() + PATIENCE
    while not os.path.exists(path):
        if time.monotonic() > end:
            ledger.complain("memlint did not say what stands in for the GPU")
            return None
        time.sleep(PAUSE)
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _tell_refused(core: ctypes.CDLL, ledger: Ledger) -> None:
    refused = _called(core, "refused")
    if refused:
        ledger.tell("refused", calls=refused)


def mark(torch: Any) -> None:
    """Computes small values, and has every snapshot of this process, also the script's own, say that there was no GPU."""
    core = _core
    if core is None:
        return
    from .known import Known
    from .values import Values, without_us

    memory = torch.cuda.memory
    snapshot = memory._snapshot
    known = Known()

    @functools.wraps(snapshot)
    def _snapshot(*args: Any, **kwargs: Any) -> Any:
        taken = snapshot(*args, **kwargs)
        without_us(taken)
        taken["memlint_record"] = _marker(core, known.branches())
        return taken

    memory._snapshot = _snapshot
    _hear_of_compiling(torch)
    _hear_of_steps()
    # To the end of the process.
    Values(known).begin()


def _hear_of_compiling(torch: Any) -> None:
    """Notes whether the program asks for compiled code, which runs eagerly here."""
    compiles = torch.compile

    @functools.wraps(compiles)
    def _compile(*args: Any, **kwargs: Any) -> Any:
        _asked.add("compiled")
        return compiles(*args, **kwargs)

    torch.compile = _compile


def _hear_of_steps() -> None:
    """Notes whether the program asks an optimizer to step."""
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    def before_step(*_: Any) -> None:
        _asked.add("step")

    register_optimizer_step_pre_hook(before_step)


def _has_idle_optimizer() -> bool:
    """Whether the program made an optimizer and asked none to step."""
    from torch.optim import Optimizer

    kinds = [Optimizer]
    for kind in kinds:
        kinds += kind.__subclasses__()
    # PyTorch puts a function of its own around the step of a class when one of it is made.
    return "step" not in _asked and any(hasattr(kind.step, "hooked") for kind in kinds)


def _marker(core: ctypes.CDLL, branches: list[dict[str, Any]]) -> str:
    """What a snapshot says of the GPU that was not there (`src/snapshot/modelled.rs`)."""
    told: dict[str, Any] = {"version": 2, **_model, "branches": branches}
    told.update(runs_eagerly="compiled" in _asked, never_steps=_has_idle_optimizer())
    told.update(sizes_not_known=_called(core, "sizes"), refused=_called(core, "refused"))
    return json.dumps(told)


def _called(core: ctypes.CDLL, which: str) -> list[str]:
    """The names of calls: those whose `sizes` are not known, or those that were `refused`."""
    room = ctypes.create_string_buffer(ROOM)
    getattr(core, f"memlint_{which}")(room, ctypes.c_size_t(ROOM))
    return room.value.decode().split()
