import os

from . import memory
from .memory import memory_stats  # noqa: F401

_queued_calls = []
_initialized = False
_staying = []


class OutOfMemoryError(RuntimeError):
    pass


def _lazy_call(call):
    if _initialized:
        call()
    else:
        _queued_calls.append(call)


def init():
    global _initialized
    if not _initialized:
        for call in _queued_calls:
            call()
        _initialized = True


def get_device_name():
    return "Imagined GPU"


def is_available():
    return "FAKE_NO_GPU" not in os.environ


def device_count():
    return int(is_available())


def empty_cache():
    pass


def allocate(size):
    """What a tensor does that stays."""
    init()
    _staying.append(memory.allocate(size))
