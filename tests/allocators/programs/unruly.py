"""A program that answers "none", but for questions whose id names what it does instead."""

from __future__ import annotations

import json
import os
import sys
import time

DEVICE = {"request": "r", "driver": "gpu.example.com", "pool": "node-0", "device": "gpu-0"}
EVERYTHING = [DEVICE] * 100_000

for line in sys.stdin:
    question = json.loads(line)
    nodes = [
        {"node": node["metadata"]["name"], "outcome": "none"} for node in question.get("nodes", ())
    ]
    answer = {"id": question["id"], "nodes": nodes}
    lines: list[str] = []
    match question["id"]:
        case "hangs":
            time.sleep(60)
        case "dies":
            print("out of cheese", file=sys.stderr, flush=True)
            os._exit(7)
        case "leaves":
            os.close(1)
            time.sleep(60)
        case "floods":
            while True:
                os.write(1, b"x" * 65536)
        case "logs-without-end":
            while True:
                os.write(2, b"x" * 65536)
        case "says-nothing":
            os.write(1, b"\n")
            continue
        case "babbles":
            lines.append("hello")
        case "repeats":
            lines.append(json.dumps(answer))
        case "answers-another":
            answer["id"] = "something-else"
        case "answers-for-a-stranger":
            nodes.append({"node": "stranger", "outcome": "none"})
        case "answers-for-nobody":
            nodes.clear()
        case "answers-twice":
            nodes *= 2
        case "invents-an-outcome":
            nodes[0]["outcome"] = "perhaps"
        case "allocates-too-much":
            nodes[0] |= {"outcome": "allocated", "allocations": [{}, {}]}
        case "has-it-all":
            nodes[0] |= {
                "outcome": "allocated",
                "allocations": [{"devices": {"results": EVERYTHING}}],
            }
        case "cannot-read":
            answer = {"id": question["id"], "invalid": "what?"}
        case "does-not-do-that":
            answer = {"id": question["id"], "unsupported": "that"}
        case "gives-up":
            nodes[0]["outcome"] = "timeout"
    # In one call, so that what belongs together is read together.
    sys.stdout.write("".join(f"{line}\n" for line in (*lines, json.dumps(answer))))
    sys.stdout.flush()
    if question["id"] == "leaves-after-one":
        break
