"""What the hook does to a program, and what it leaves alone."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from conftest import Program, Ran

TRAINS = """
import torch
from torch.optim.optimizer import Optimizer
optimizer = Optimizer()
for step in range(STEPS):
    torch.cuda.allocate(100 + step)
    optimizer.step()
"""


def trains(steps: int) -> str:
    return TRAINS.replace("STEPS", str(steps))


def test_writes_at_the_end(program: Program) -> None:
    ran = program.run(trains(3) + "print('done')")
    assert (ran.status, ran.out, ran.err) == (0, "done\n", "")
    assert ran.snapshots == {"snapshot.1.pickle": [100, 101, 102]}
    (written,) = ran.events("written")
    assert (written["name"], written["reason"], written["steps"]) == ("snapshot", "end", 3)
    assert written["rank"] is None
    assert (written["torch"], written["cuda"], written["device"]) == ("2.11.0+cu130", "13.0", "Imagined GPU")
    assert [line["event"] for line in ran.told] == ["python", "torch", "recording", "written", "end"]


@pytest.mark.parametrize(
    ("ends", "exception"),
    [
        ("raise TypeError('slices')", "TypeError"),
        ("try:\n    raise TypeError\nexcept TypeError:\n    pass", None),
        ("raise KeyboardInterrupt", None),
        ("raise SystemExit(3)", None),
    ],
)
def test_says_with_which_exception_the_program_ended(program: Program, ends: str, exception: str | None) -> None:
    program.run(trains(1) + ends)
    told = Ran.read(program.folder / "out" / "snapshot.1.pickle").get("memlint_end")
    expected = {"version": 1, "exception": exception, "steps": 1}
    assert (told and json.loads(told)) == (expected if exception else None)


@pytest.mark.parametrize("asked", [3, 4])
def test_says_that_fewer_steps_were_made_than_were_asked_for(program: Program, asked: int) -> None:
    program.run(trains(3), iterations=asked)
    told = Ran.read(program.folder / "out" / "snapshot.1.pickle").get("memlint_end")
    expected = {"version": 1, "exception": "", "steps": 3, "asked": 4}
    assert (told and json.loads(told)) == (expected if asked == 4 else None)


CYCLE = """
import gc, torch
gc.disable()
class Owner: pass
one = Owner()
one.itself, one.block = one, torch.cuda.allocate(7)
del one
"""


@pytest.mark.parametrize("collects", [True, False])
def test_says_when_garbage_was_collected(program: Program, collects: bool) -> None:
    begun = time.time_ns() // 1000
    program.run(CYCLE + ("gc.collect()\ngc.collect()" if collects else ""))
    told = Ran.read(program.folder / "out" / "snapshot.1.pickle").get("memlint_collections")
    if not collects:
        assert told is None
        return
    known = json.loads(told)
    at, took, *more = known["spans"]
    assert (known["version"], more) == (1, []), "what freed nothing is not told"
    assert begun <= at <= at + took <= time.time_ns() // 1000


def test_listens_to_the_garbage_collector_as_long_as_it_records(program: Program) -> None:
    listening = "print('listening', sum('memlint' in str(heard) for heard in gc.callbacks))"
    ran = program.run(CYCLE + trains(1) + listening + "\n" + trains(1) + listening, iterations=2)
    assert [line for line in ran.out.splitlines() if "listening" in line] == ["listening 1", "listening 0"]


def test_records_before_the_first_allocation_and_not_before_cuda(program: Program) -> None:
    ran = program.run("import torch\nassert torch.cuda.memory.recording is None\ntorch.cuda.allocate(7)")
    assert ran.snapshots == {"snapshot.1.pickle": [7]}
    ran = program.run("import torch")
    assert ran.events("recording") == ran.events("recording")[:1], "CUDA was not initialised by the hook"


def test_python_without_torch_is_left_alone(program: Program) -> None:
    text = "import sys; print(sorted(name for name in sys.modules if name.startswith(('torch', 'multiprocessing'))))"
    ran = program.run(text)
    assert (ran.out, ran.err) == ("[]\n", "")
    assert [line["event"] for line in ran.told] == ["python"]


def test_makes_room_for_the_users_own_sitecustomize(program: Program) -> None:
    own = program.folder / "own" / "sitecustomize.py"
    own.write_text("import builtins; builtins.mine = __file__")
    ran = program.run("import sitecustomize; print(mine == sitecustomize.__file__)" + trains(1))
    assert ran.out == "True\n"
    assert len(ran.snapshots) == 1
    own.write_text("raise ValueError('broken')")
    ran = program.run("print(1)")
    assert "ValueError" in ran.err, "a fault of the user's own is the user's"


def test_leaves_no_trace_on_the_path_and_the_loader(program: Program) -> None:
    text = """
import sys, torch
print([path for path in sys.path if "hook" in path], [finder for finder in sys.meta_path if "memlint" in repr(finder)])
print("exec_module" in vars(torch.__spec__.loader))
"""
    assert program.run(text).out == "[] []\nFalse\n"


def test_asking_for_torch_imports_nothing(program: Program) -> None:
    text = "import importlib.util, sys; print(importlib.util.find_spec('torch').name, 'torch' in sys.modules)"
    assert program.run(text + trains(1)).out == "torch False\n"
    assert len(program.run("import importlib.util; importlib.util.find_spec('torch')" + trains(1)).snapshots) > 0


def test_stops_recording_after_the_iterations(program: Program) -> None:
    ran = program.run(trains(6) + "print(torch.cuda.memory.recording)", iterations=2)
    assert ran.out == "None\n"
    assert ran.snapshots == {"snapshot.1.pickle": [100, 101]}
    (end,) = ran.events("end")
    assert end["steps"] == 6
    assert end["unrecorded_seconds"] is not None


def test_ends_the_program_after_the_iterations(program: Program) -> None:
    ran = program.run("import atexit; atexit.register(print, 'last words')" + trains(6), iterations=2, stop=True)
    assert (ran.status, ran.out) == (0, "last words\n")
    assert ran.snapshots == {"snapshot.1.pickle": [100, 101]}


def test_writes_on_the_way(program: Program) -> None:
    ran = program.run(trains(5), every=2)
    names = [written["name"] for written in ran.events("written")]
    assert names == ["snapshot_step_2", "snapshot_step_4", "snapshot_step_5_exit"]


def test_keeps_the_moment_at_which_memory_ran_out(program: Program) -> None:
    ran = program.run(trains(2) + "torch.cuda.allocate(1 << 40)")
    assert ran.status == 1
    assert "OutOfMemoryError" in ran.err
    (written,) = ran.events("written")
    assert (written["reason"], written["name"]) == ("out-of-memory", "snapshot")


def test_a_program_that_goes_on_is_recorded_to_its_end(program: Program) -> None:
    retry = "\ntry:\n    torch.cuda.allocate(1 << 40)\nexcept RuntimeError:\n    pass\n"
    ran = program.run(trains(2) + retry + "optimizer.step()")
    assert [written["reason"] for written in ran.events("written")] == ["out-of-memory", "end"]


def test_ranks_and_their_names(program: Program) -> None:
    for rank in range(2):
        ran = program.run(trains(1), environment={"RANK": str(rank), "WORLD_SIZE": "2"})
    assert sorted(ran.snapshots) == ["rank0.1.pickle", "rank1.1.pickle"]
    again = program.run(trains(1), environment={"RANK": "0", "WORLD_SIZE": "2"})
    assert len(again.snapshots) == 3, "a worker that is started anew takes nothing away"


def test_a_process_group_tells_the_rank_although_it_is_gone_at_the_end(program: Program) -> None:
    group = "import torch\ntorch.distributed.group = (3, 4)\n"
    ran = program.run(group + trains(1) + "torch.distributed.group = None", name="mine", named=True)
    assert list(ran.snapshots) == ["mine_rank3.1.pickle"]


def test_one_process_of_a_launcher_has_no_rank(program: Program) -> None:
    ran = program.run(trains(1), environment={"RANK": "0", "WORLD_SIZE": "1"})
    assert list(ran.snapshots) == ["snapshot.1.pickle"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_that_use_cuda_write_their_own(program: Program, method: str) -> None:
    text = f"""
import multiprocessing, torch
def child():
    torch.cuda.allocate(5)
if __name__ == "__main__":
    workers = [multiprocessing.get_context({method!r}).Process(target=child) for _ in range(2)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
"""
    ran = program.run(text)
    assert ran.err == ""
    assert list(ran.snapshots.values()) == [[5], [5]]


def test_forks_of_a_recorded_process_write_nothing(program: Program) -> None:
    text = trains(1) + "import os\nif os.fork() == 0:\n    optimizer.step()\n    os._exit(0)\nos.wait()\n"
    ran = program.run(text, every=1)
    assert len({written["pid"] for written in ran.events("written")}) == 1
    ran = program.run(text.replace("os._exit(0)", "raise SystemExit"))
    assert len(ran.events("end")) == 2, "one of each program"


def test_workers_of_a_data_loader_are_not_recorded(program: Program) -> None:
    ran = program.run("import torch\ntorch.utils.data.worker = 0\n" + trains(1))
    assert ran.snapshots == {}
    assert ran.events("recording") == []


def test_nothing_is_written_of_a_process_without_memory(program: Program) -> None:
    ran = program.run("import torch; torch.cuda.init()")
    assert ran.snapshots == {}
    assert ran.events("failed") == []


def test_the_scripts_own_recording_adds_and_takes_nothing_away(program: Program) -> None:
    text = """
import torch
torch.cuda.allocate(1)
record = torch.cuda.memory._record_memory_history
record(True)
record(max_entries=2, stacks="python", clear_history=True)
torch.cuda.allocate(2)
torch.cuda.memory._dump_snapshot("own.pickle")
record(enabled=None)
torch.cuda.allocate(3)
print(torch.cuda.memory.calls)
record(max_entries=1000)
print(torch.cuda.memory.calls[1:])
try:
    record("wrong")
except RuntimeError as error:
    print(error)
try:
    record(wrong=1)
except TypeError:
    print("TypeError")
"""
    ran = program.run(text, max_entries=500)
    assert ran.out.splitlines() == [
        "[('all', 'all', 'all', 500)]",
        "[('all', 'all', 'all', 1000)]",
        "expected state to be 'state', 'all', or None, not wrong",
        "TypeError",
    ]
    assert ran.snapshots == {"snapshot.1.pickle": [1, 2, 3]}
    own = ran.read(program.folder / "own.pickle")
    assert [one["size"] for one in own["device_traces"][0]] == [1, 2]


def test_checkpoints_stop_early_again_when_nothing_is_recorded_any_more(program: Program) -> None:
    text = """
import torch
from torch.optim.optimizer import Optimizer
from torch.utils import checkpoint
said = [checkpoint._enable_checkpoint_early_stop]
torch.cuda.allocate(1)
said.append(checkpoint._enable_checkpoint_early_stop)
Optimizer().step()
said.append(checkpoint._enable_checkpoint_early_stop)
print(said)
"""
    ran = program.run(text, iterations=1)
    assert ran.out == "[None, False, None]\n", "PyTorch loses the exception where it records a free meanwhile"


def test_old_torch_is_told_and_left_alone(program: Program) -> None:
    ran = program.run(trains(1) + "print('done')", environment={"FAKE_TORCH": "2.0.1"})
    assert (ran.status, ran.out) == (0, "done\n")
    assert ran.err == "memlint: PyTorch 2.0.1 is too old to be recorded; 2.1 or later is needed\n"
    assert [failed["what"] for failed in ran.events("failed")] == [ran.err.strip().removeprefix("memlint: ")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_takes_nothing_is_one_line(program: Program) -> None:
    (program.folder / "out").chmod(0o500)
    assert "cannot be written" in program.run(trains(1)).err


def test_a_folder_that_is_gone_is_one_line(program: Program) -> None:
    (program.folder / "out").rmdir()
    ran = program.run(trains(1) + "print('done')")
    assert (ran.status, ran.out) == (0, "done\n")
    assert len(ran.err.splitlines()) == 1
    assert "cannot be written: No such file or directory" in ran.err


def test_a_full_disk_leaves_no_half_file(program: Program) -> None:
    text = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\nimport signal; "
    text += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + trains(5000) + "print('done')"
    ran = program.run(text)
    assert ran.out == "done\n"
    assert "cannot be written" in ran.err
    assert ran.snapshots == {}


def test_a_fault_of_the_hook_is_one_line(program: Program) -> None:
    ran = program.run("import torch\ntorch.cuda.memory._snapshot = None\n" + trains(1) + "print('done')")
    assert ran.out == "done\n"
    assert len(ran.err.splitlines()) == 1
    ran = program.run("print('done')", ledger=3)
    assert (ran.status, ran.out) == (0, "done\n")


def test_ends_through_os_exit(program: Program) -> None:
    ran = program.run(trains(2) + "import os; os._exit(4)")
    assert ran.status == 4
    assert len(ran.snapshots) == 1


WAITS = "print('ready', flush=True)\nimport time\nwhile True:\n    time.sleep(0.05)\n    optimizer.step()\n"


def signalled(program: Program, text: str, *signals: int) -> "tuple[int, Program]":
    process = program.start(text)
    assert process.stdout is not None
    while process.stdout.readline() != "ready\n":
        assert process.poll() is None
    for number in signals:
        process.send_signal(number)
        time.sleep(0.5)
    return program.finish(process).status, program


def names(program: Program) -> list[str]:
    return sorted(file.name for file in (program.folder / "out").iterdir())


def test_a_signal_that_ends_writes_and_ends(program: Program) -> None:
    status, _ = signalled(program, trains(2) + WAITS, signal.SIGTERM)
    assert status == -signal.SIGTERM
    assert names(program) == ["snapshot.1.pickle"]


def test_a_signal_that_asks_writes_and_goes_on(program: Program) -> None:
    status, _ = signalled(program, trains(2) + WAITS, signal.SIGUSR1, signal.SIGINT)
    assert status == -signal.SIGINT
    first, second = names(program)
    assert first == "snapshot.2.pickle"
    assert second.startswith("snapshot_step_")


def test_what_asks_for_a_snapshot_does_not_end_forked_workers(program: Program) -> None:
    text = """
import os, signal
def forked(number):
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), number)
        os._exit(7)
    status = os.waitpid(pid, 0)[1]
    return status >> 8, status & 127
print(forked(signal.SIGUSR1), forked(signal.SIGTERM))
"""
    ran = program.run(trains(1) + text)
    assert ran.out == f"(7, 0) (0, {signal.SIGTERM})\n"
    assert [written["reason"] for written in ran.events("written")] == ["end"]


def test_the_scripts_handlers_run_and_are_seen(program: Program) -> None:
    text = """
import signal
def mine(number, frame):
    print("mine", number, flush=True)
print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
print(signal.signal(signal.SIGTERM, mine) == signal.SIG_DFL, signal.getsignal(signal.SIGTERM) is mine)
try:
    signal.signal(signal.SIGUSR1, "wrong")
except TypeError:
    print("TypeError")
import json
import os
os.kill(os.getpid(), signal.SIGTERM)
print(signal.signal(signal.SIGTERM, signal.SIG_IGN) is mine)
os.kill(os.getpid(), signal.SIGTERM)
"""
    ran = program.run(trains(1) + text)
    assert ran.status == 0
    assert ran.out.splitlines() == ["True", "True True", "TypeError", "mine 15", "True"]


def test_isolated_python_does_not_see_the_hook(program: Program) -> None:
    assert program.run("print(1)", "-I").told == []


def test_nothing_but_snapshots_is_left(program: Program) -> None:
    program.run(trains(3), every=1)
    assert not [file for file in Path(program.folder, "out").iterdir() if file.suffix != ".pickle"]
