"""`memlint check` beside CPython's `pickle.load` on the same files, in turn and in one run.

    python3 benches/against_cpython.py target/release/memlint FILE.pickle... [--runs N]

FILEs are plain pickles (decompress recordings first: zstd -d). For each it prints the medians of wall and processor seconds and the
peak of resident memory, of the whole process in each case, and the ratio of the wall times pair by pair.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

LOAD = "import gc, pickle, sys; gc.disable(); pickle.load(open(sys.argv[1], 'rb'))"


def measured(argv):
    """Wall seconds, processor seconds, peak resident bytes of a process."""
    start = time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        sys.exit(f"{argv[0]} failed with {process.returncode}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("memlint")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    print("| file | bytes | memlint wall | cpu | rss | rss/file | pickle.load wall | cpu | rss | wall ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for path in arguments.files:
        ours, theirs = [], []
        for _ in range(arguments.runs):
            ours.append(measured([arguments.memlint, "check", path]))
            theirs.append(measured([sys.executable, "-c", LOAD, path]))
        ratio = statistics.median(a[0] / b[0] for a, b in zip(ours, theirs))
        (a_wall, a_cpu, a_rss), (b_wall, b_cpu, b_rss) = (
            [statistics.median(column) for column in zip(*rows)] for rows in (ours, theirs)
        )
        size = os.path.getsize(path)
        print(
            f"| {os.path.basename(path)} | {size} | {a_wall:.3f} s | {a_cpu:.3f} s | {a_rss / 1e6:.0f} MB | {a_rss / size:.2f} "
            f"| {b_wall:.3f} s | {b_cpu:.3f} s | {b_rss / 1e6:.0f} MB | {ratio:.2f} |"
        )


if __name__ == "__main__":
    main()
