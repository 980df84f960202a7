"""Writes a snapshot whose names are markup and scripts: python3 hostile.py OUT.pickle"""

import pickle
import sys

WORDS = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    '"><svg onload="window.hacked = 1">',
    "javascript:window.hacked=1",
    "\u202e<b>turned</b>\u2028",
    "{{constructor.constructor('window.hacked=1')()}}",
]
BASE = 0x7F0000000000
SIZE = 8 << 20


def frames(turn, line):
    word = WORDS[turn % len(WORDS)]
    return [
        {"filename": f"/home/{word}/train.py", "line": line, "name": word},
        {"filename": "/home/user/train.py", "line": 5, "name": "<module>"},
    ]


def event(action, address, size, turn, line, time):
    return {
        "action": action,
        "addr": address,
        "size": size,
        "stream": 0,
        "time_us": time,
        "frames": frames(turn, line),
    }


def main(target):
    events = [event("segment_alloc", BASE, 64 * SIZE, 0, 9, 1_000_000)]
    kept = []
    for turn in range(8):
        time = 1_000_100 + 1000 * turn
        kept.append(BASE + 2 * turn * SIZE)
        events.append(event("alloc", BASE + 2 * turn * SIZE, SIZE, turn, 10, time))
        events.append(event("alloc", BASE + (2 * turn + 1) * SIZE, SIZE, turn, 11, time + 10))
        events.append(event("free_requested", BASE + (2 * turn + 1) * SIZE, SIZE, turn, 12, time + 20))
        events.append(event("free_completed", BASE + (2 * turn + 1) * SIZE, SIZE, turn, 12, time + 20))
    blocks = []
    for turn in range(32):
        state = "active_allocated" if BASE + 2 * turn * SIZE in kept else "inactive"
        address, line = BASE + 2 * turn * SIZE, 10
        blocks.append(block(address, state, frames(turn, line)))
        blocks.append(block(address + SIZE, "inactive", []))
    segment = {
        "device": 0,
        "address": BASE,
        "total_size": 64 * SIZE,
        "allocated_size": len(kept) * SIZE,
        "active_size": len(kept) * SIZE,
        "requested_size": len(kept) * SIZE,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": frames(0, 9),
        "blocks": blocks,
    }
    annotation = {"name": WORDS[0], "time_us": 1_000_050, "device": 0, "stage": "START"}
    end = dict(annotation, time_us=1_004_000, stage="END")
    snapshot = {
        "segments": [segment],
        "device_traces": [events],
        "allocator_settings": {},
        "external_annotations": [annotation, end],
    }
    with open(target, "wb") as file:
        pickle.dump(snapshot, file)


def block(address, state, of):
    return {"address": address, "size": SIZE, "requested_size": SIZE, "state": state, "frames": of}


main(sys.argv[1])
