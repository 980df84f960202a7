"""Whether the time of a check is linear in the events: one recording repeated 1, 10, 100 and 1000 times, checked each time.

    python3 benches/linear.py target/release/memlint IN.pickle [TURNS...]

IN is a plain pickle, of some 10 thousand events for the usual range (snapshots/seed-resnet50-fixed; decompress it first:
zstd -d). Prints a table: the best of some runs, the processor's time (which other programs disturb least) an event, and the
highest resident memory as a multiple of the file. The largest file takes 2 GB of disk, and making it some 10 GB of memory.
"""

import multiprocessing
import os
import sys
import tempfile

from against_cpython import measured
from enlarge import enlarge

RUNS = 3


def main():
    memlint, source, turns = sys.argv[1], sys.argv[2], [int(turns) for turns in sys.argv[3:]] or [1, 10, 100, 1000]
    print("| events | file | wall | processor | an event | resident / file |", flush=True)
    print("|---:|---:|---:|---:|---:|---:|")
    for count in turns:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "snapshot.pickle")
            # In a process of its own, which gives its memory back.
            with multiprocessing.Pool(1) as pool:
                events = pool.apply(enlarge, (source, path, count))
            size = os.path.getsize(path)
            runs = [measured([memlint, "check", path]) for _ in range(RUNS)]
            wall, processor, resident = (min(run[place] for run in runs) for place in range(3))
            print(
                f"| {events:,} | {size / 1e6:.1f} MB | {wall:.3f} s | {processor:.3f} s "
                f"| {processor / events * 1e6:.3f} us | {resident / size:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
