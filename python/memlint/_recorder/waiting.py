"""Notices that torch is imported, without importing it.

A finder at the head of `sys.meta_path` asks the others for torch and puts itself between the loader and whoever imports:
when the module is complete, recording begins to wait for CUDA.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Optional

from . import standin
from .ledger import Ledger
from .order import given

AWAITED = "torch"


class Finder:
    """Finds torch like everybody else, and tells once it is there."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._asks_others = False

    def find_spec(self, name: str, path: Any = None, target: Optional[ModuleType] = None) -> Optional[ModuleSpec]:
        """The specification of torch that the other finders give, with a loader that tells."""
        if name != AWAITED or self._asks_others:
            return None
        self._asks_others = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asks_others = False
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            self._listen(spec.loader)
        return spec

    def _listen(self, loader: Any) -> None:
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            order = given()
            if order.model is not None:
                standin.load(os.path.dirname(module.__file__ or ""), order, self._ledger)
            run(module)
            standin.mark(module)
            # As it was, for whoever looks at loaders.
            loader.__dict__.pop("exec_module", None)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            torch_is_here(module, self._ledger)

        try:
            loader.exec_module = exec_module
        except AttributeError as error:
            self._ledger.complain(f"torch comes from a loader that cannot be listened to: {error}")


def torch_is_here(torch: ModuleType, ledger: Ledger) -> None:
    """Prepares recording; the program does not notice."""
    try:
        from .recorder import wait_for_cuda

        wait_for_cuda(torch, given(), ledger)
    except Exception as error:
        ledger.complain(f"this program is not recorded: {error!r}")


def begin() -> None:
    """Waits for torch."""
    ledger = Ledger(given().ledger)
    ledger.tell("python")
    torch = sys.modules.get(AWAITED)
    if torch is not None:
        torch_is_here(torch, ledger)
    else:
        sys.meta_path.insert(0, Finder(ledger))
