"""Makes a large snapshot of a recorded one, for measuring: its events again and again, each time at other addresses and
later times, pickled by CPython like the original.

    python3 benches/enlarge.py IN.pickle OUT.pickle GIGABYTES

IN is a plain pickle (decompress it first: zstd -d). The result holds every event's own list of frames and shares the
frames themselves, as PyTorch's files do.
"""

import gc
import os
import pickle
import sys

SHIFT = 1 << 40  # bytes of address space for one repetition


def later(event, turn, duration):
    event = dict(event)
    if "addr" in event:
        event["addr"] += turn * SHIFT
    event["time_us"] += turn * duration
    if "frames" in event:
        event["frames"] = list(event["frames"])
    # PyTorch makes a new string for every event; a shared one would become a memo reference.
    event["compile_context"] = str(b"N/A", "ascii")
    return event


def shifted(segment, turn):
    segment = dict(segment, address=segment["address"] + turn * SHIFT)
    segment["blocks"] = [dict(block, address=block["address"] + turn * SHIFT) for block in segment["blocks"]]
    return segment


def enlarge(source, target, turns):
    gc.disable()
    with open(source, "rb") as file:
        snapshot = pickle.load(file)
    for device, trace in enumerate(snapshot["device_traces"]):
        if trace:
            duration = trace[-1]["time_us"] - trace[0]["time_us"] + 1000
            snapshot["device_traces"][device] = [
                later(event, turn, duration) for turn in range(turns) for event in trace
            ]
            snapshot["external_annotations"] = [
                dict(mark, time_us=mark["time_us"] + turn * duration)
                for turn in range(turns)
                for mark in snapshot["external_annotations"]
            ]
    snapshot["segments"] = [shifted(segment, turn) for turn in range(turns) for segment in snapshot["segments"]]
    with open(target, "wb") as file:
        pickle.dump(snapshot, file)
    return sum(len(trace) for trace in snapshot["device_traces"])


def main():
    source, target, size = sys.argv[1], sys.argv[2], float(sys.argv[3]) * (1 << 30)
    enlarge(source, target, max(1, round(size / os.path.getsize(source))))


if __name__ == "__main__":
    main()
