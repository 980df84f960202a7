"""Whether the time of a check is linear in whatever may be large: made-up recordings that grow in one way at a time.

    python3 benches/scale.py target/release/memlint [WAY...] [--most N] [--instructions]

The ways: ranks, folders (a folder for each rank), sites, stacks, live, iterations, findings, depth; and other commands on as many
ranks: ranks-stats, ranks-diff (against themselves), ranks-report. Each is doubled a few times; the table
shows the processor's time, the memory, where `strace` is there the calls about files, to which power of the size each
grew between the last two sizes, and how many lines the largest prints. A power above 1.1 is to be mended.
"""

import argparse
import math
import multiprocessing
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile

from against_cpython import measured

SIZES = {
    "ranks": [128, 256, 512, 1024],
    "ranks-stats": [128, 256, 512, 1024],
    "ranks-diff": [128, 256, 512, 1024],
    "ranks-report": [128, 256, 512, 1024],
    "folders": [128, 256, 512, 1024],
    "sites": [12_500, 25_000, 50_000, 100_000],
    "stacks": [25_000, 50_000, 100_000, 200_000],
    "live": [125_000, 250_000, 500_000, 1_000_000],
    "iterations": [12_500, 25_000, 50_000, 100_000],
    "findings": [1_250, 2_500, 5_000, 10_000],
    "depth": [64, 128, 256, 512],
}
MIB = 1 << 20


class Recording:
    """Events of one device, as PyTorch writes them: all in one segment of a terabyte."""

    def __init__(self):
        self.events, self.frames, self.address, self.live = [], {}, 1 << 40, {}
        self.events.append(self.event("segment_alloc", self.address, 1 << 40, []))

    def frame(self, name, line, file="/home/me/train.py"):
        return self.frames.setdefault((name, line, file), {"name": name, "line": line, "filename": file})

    def event(self, action, address, size, stack):
        time = len(self.events)
        return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": 1000 + time, "frames": stack}

    def stack(self, *lines):
        """Outermost first, as a person reads it: `("main", 10), ("forward", 20)`."""
        return [self.frame(*line) for line in reversed(lines)]

    def alloc(self, size, stack):
        address = self.address
        self.address += max(512, (size + 511) // 512 * 512)
        self.live[address] = (size, stack)
        self.events.append(self.event("alloc", address, size, list(stack)))
        return address

    def free(self, address, stack=()):
        size, _ = self.live.pop(address)
        for action in ("free_requested", "free_completed"):
            self.events.append(self.event(action, address, size, list(stack)))

    def write(self, path):
        blocks = []
        at = 1 << 40
        for address, (size, stack) in sorted(self.live.items()):
            if address > at:
                blocks.append({"address": at, "size": address - at, "requested_size": 0, "state": "inactive", "frames": []})
            whole = max(512, (size + 511) // 512 * 512)
            state = "active_allocated"
            blocks.append({"address": address, "size": whole, "requested_size": size, "state": state, "frames": stack})
            at = address + whole
        end = (1 << 40) + (1 << 40)
        blocks.append({"address": at, "size": end - at, "requested_size": 0, "state": "inactive", "frames": []})
        active = sum(block["size"] for block in blocks if block["state"] != "inactive")
        segment = {
            "device": 0, "address": 1 << 40, "total_size": 1 << 40, "allocated_size": active, "active_size": active,
            "requested_size": sum(size for size, _ in self.live.values()), "stream": 0, "segment_type": "large",
            "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks,
        }  # fmt: skip
        snapshot = {"segments": [segment], "device_traces": [self.events], "allocator_settings": {}}
        with open(path, "wb") as file:
            pickle.dump(snapshot, file)


def train(recording, turns, each=lambda recording, turn: None, weights=8):
    """A loop in order: weights, activations that the backward pass lets go, gradients that are cleared."""
    for layer in range(weights):
        recording.alloc(4 * MIB, recording.stack(("<module>", 90), ("main", 5), ("__init__", 100 + layer)))
    for turn in range(turns):
        kept = [
            recording.alloc(16 * MIB, recording.stack(("<module>", 90), ("main", 11), ("forward", 120 + layer)))
            for layer in range(3)
        ]
        each(recording, turn)
        backward = recording.stack(("<module>", 90), ("main", 12))
        gradients = []
        for address in reversed(kept):
            recording.free(address, backward)
            gradients.append(recording.alloc(4 * MIB, backward))
        for address in gradients:
            recording.free(address, recording.stack(("<module>", 90), ("main", 14)))


def sites(size):
    recording = Recording()
    lines = size // 10

    def temporaries(recording, turn):
        for line in range(turn * lines, (turn + 1) * lines):
            stack = recording.stack(("<module>", 90), ("main", 11), ("forward", 1000 + line))
            recording.free(recording.alloc(4096, stack), stack)

    train(recording, 10, temporaries)
    return recording


def stacks(size):
    recording = Recording()
    each = size // 10

    def temporaries(recording, turn):
        for number in range(turn * each, (turn + 1) * each):
            way = [(f"call{place}", 1000 + number // 40**place % 40) for place in range(4)]
            stack = recording.stack(("<module>", 90), ("main", 11), *way)
            recording.free(recording.alloc(4096, stack), stack)

    train(recording, 10, temporaries)
    return recording


def live(size):
    recording = Recording()
    stack = recording.stack(("<module>", 90), ("main", 5), ("load", 300))
    for number in range(size):
        recording.alloc(512 + number % 64 * 16, stack)
    train(recording, 12)
    return recording


def iterations(size):
    recording = Recording()
    train(recording, size)
    return recording


def findings(size):
    """As many lines that keep something in each iteration."""
    recording = Recording()

    def leak(recording, turn):
        for line in range(size):
            recording.alloc(64 * 1024, recording.stack(("<module>", 90), ("main", 11), (f"keep{line}", 1000 + line)))

    train(recording, 8, leak)
    return recording


def depth(size):
    recording = Recording()

    def deep(recording, turn):
        for number in range(200):
            calls = [("call", 1000 + place) for place in range(size)]
            stack = recording.stack(("<module>", 90), ("main", 11), *calls, ("leaf", 5000 + number))
            recording.free(recording.alloc(4096, stack), stack)

    train(recording, 10, deep)
    return recording


MAKERS = {
    "sites": sites, "stacks": stacks, "live": live, "iterations": iterations, "findings": findings, "depth": depth,
}  # fmt: skip


def make(way, size, folder):
    """What to check, in a folder of its own."""
    if way in MAKERS:
        path = os.path.join(folder, "snapshot.pickle")
        MAKERS[way](size).write(path)
        return path
    one = os.path.join(folder, "one.pickle")
    out = os.path.join(folder, "out")
    os.mkdir(out)
    for number in range(size):
        recording = Recording()
        train(recording, 12)
        if way == "folders":
            # Each process ran its own copy of the program, as Ray's workers do.
            for (name, line, _), frame in recording.frames.items():
                frame["filename"] = f"/tmp/worker{number}/job/train.py"
            os.mkdir(os.path.join(out, f"rank{number}"))
            recording.write(os.path.join(out, f"rank{number}", "snapshot.pickle"))
        else:
            if number == 0:
                recording.write(one)
            shutil.copy(one, os.path.join(out, f"rank{number}_snapshot.pickle"))
    return out


def arguments_of(way, path, folder):
    """How memlint is asked."""
    if way == "ranks-stats":
        return ["stats", path, "--isolated"]
    if way == "ranks-diff":
        return ["diff", path, path, "--isolated"]
    if way == "ranks-report":
        return ["report", path, "--isolated", "-o", os.path.join(folder, "report.html")]
    return ["check", path, "--exit-zero", "--isolated"]


def calls(argv, folder):
    """Calls about files that a process makes; `None` where nobody can count them."""
    counted = os.path.join(folder, "calls")
    try:
        subprocess.run(
            ["strace", "-f", "-c", "-e", "trace=%file,getdents64", "-o", counted, *argv],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        with open(counted) as file:
            return int(file.read().splitlines()[-1].split()[3])
    except (OSError, IndexError, ValueError):
        return None


def instructions(argv):
    """Instructions that a process executes, which no other process disturbs; `None` where nobody can count them."""
    try:
        counting = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *argv]
        said = subprocess.run(counting, capture_output=True, text=True, check=False).stderr
    except OSError:
        return None
    collected = re.search(r"Collected : (\d+)", said)
    return collected and int(collected[1])


def power(sizes, values, since=-2):
    """To which power of the size something grew from one size, the one before the last, to the last."""
    if len(sizes) < 2 or not all(values[since:]):
        return "-"
    return f"{math.log(values[-1] / values[since]) / math.log(sizes[-1] / sizes[since]):.2f}"


def count_instructions(memlint, ways, most):
    """A table of its own: under valgrind everything takes fifty times as long."""
    print("| way | largest | instructions | power over all doublings | over the last |")
    print("|---|---:|---:|---:|---:|")
    for way in ways:
        sizes = [size for size in SIZES[way] if size <= most]
        counts = []
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                path = make(way, size, folder)
                counts.append(instructions([os.path.abspath(memlint), *arguments_of(way, path, folder)]))
        billions = f"{counts[-1] / 1e9:.2f} billion" if counts[-1] else "-"
        print(f"| {way} | {sizes[-1]:,} | {billions} | {power(sizes, counts, 0)} | {power(sizes, counts)} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("memlint")
    parser.add_argument("ways", nargs="*", default=[])
    parser.add_argument("--most", type=int, default=sys.maxsize)
    parser.add_argument("--instructions", action="store_true", help="count instructions (valgrind) in place of measuring time")
    arguments = parser.parse_args()
    if arguments.instructions:
        return count_instructions(arguments.memlint, arguments.ways or SIZES, arguments.most)
    print("| way | size | processor | power | resident | power | calls about files | power | lines |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for way in arguments.ways or SIZES:
        sizes, columns = [], ([], [], [])
        for size in [size for size in SIZES[way] if size <= arguments.most]:
            with tempfile.TemporaryDirectory() as folder:
                # In a process of its own, which gives its memory back.
                with multiprocessing.Pool(1) as pool:
                    path = pool.apply(make, (way, size, folder))
                argv = [os.path.abspath(arguments.memlint), *arguments_of(way, path, folder)]
                runs = [measured(argv) for _ in range(2)]
                _, processor, resident = (min(run[place] for run in runs) for place in range(3))
                lines = subprocess.run(argv, capture_output=True, check=False).stdout.count(b"\n")
                sizes.append(size)
                for column, value in zip(columns, (processor, resident, calls(argv, folder))):
                    column.append(value)
            shown = [f"{columns[0][-1]:.3f} s", f"{columns[1][-1] / 1e6:.0f} MB", str(columns[2][-1] or "-")]
            cells = [cell for text, column in zip(shown, columns) for cell in (text, power(sizes, column))]
            print(f"| {way} | {size:,} | {' | '.join(cells)} | {lines} |", flush=True)


if __name__ == "__main__":
    main()
