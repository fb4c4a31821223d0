"""An allocator with one fault, named by its argument: the reference, asked something else.

FAULT: taints-ignored, in-use-ignored, first-claim-only, last-device, or none.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from reference_allocator.wire import answer_allocate

Json = dict[str, Any]


def devices(question: Json) -> list[Json]:
    """All devices of a question."""
    return [device for item in question["slices"] for device in item["spec"].get("devices", ())]


def changed(question: Json, fault: str) -> Json:
    """What is asked of the reference instead."""
    if fault == "taints-ignored":
        for device in devices(question):
            device.pop("taints", None)
    elif fault == "in-use-ignored":
        question["allocated"] = []
    elif fault == "first-claim-only":
        question["claims"] = question["claims"][:1]
    elif fault == "last-device":
        for item in question["slices"]:
            item["spec"].get("devices", []).reverse()
    return question


for line in sys.stdin:
    asked = json.loads(line)
    claims = len(asked["claims"])
    answer = json.loads(answer_allocate(json.dumps(changed(asked, sys.argv[1]))))
    for node in answer["nodes"]:
        if len(node.get("allocations", [])) not in (0, claims):
            node.pop("allocations")
    print(json.dumps(answer), flush=True)
