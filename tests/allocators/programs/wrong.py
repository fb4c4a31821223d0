"""An allocator with one fault, named by its argument: the reference, asked something else.

FAULT: taints-ignored, in-use-ignored, first-claim-only, last-device, forgets-the-row,
extended-resources-ignored, devices-of-a-row-untold, or none.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from reference_allocator.wire import answer_allocate

Json = dict[str, Any]


def devices(question: Json) -> list[Json]:
    """All devices of a question."""
    slices = question.get("slices", ())
    return [device for item in slices for device in item["spec"].get("devices", ())]


def changed(question: Json, fault: str) -> Json:
    """What is asked of the reference instead."""
    if fault == "taints-ignored":
        for device in devices(question):
            device.pop("taints", None)
    elif fault == "in-use-ignored":
        question["allocated"] = []
    elif fault == "first-claim-only":
        question["claims"] = question["claims"][:1]
    elif fault == "extended-resources-ignored":
        for pod in (question, *question.get("following", ())):
            pod.pop("pod", None)
    elif fault == "last-device":
        for item in question.get("slices", ()):
            item["spec"].get("devices", []).reverse()
    return question


def answered(question: Json, fault: str) -> Json:
    """The reference's answer to what is asked of it instead."""
    answer: Json = json.loads(answer_allocate(json.dumps(changed(question, fault))))
    if fault == "forgets-the-row":
        for number, pod in enumerate(question.get("following", ())):
            alone = {key: question[key] for key in question if key not in ("following", "pod")}
            others = answered({**alone, **pod}, "none")["nodes"]
            for node, other in zip(answer["nodes"], others, strict=True):
                node["following"][number] = other
                for field in ("node", "ns", "steps"):
                    other.pop(field)
    return answer


for line in sys.stdin:
    asked = json.loads(line)
    claims = len(asked.get("claims", ()))
    answer = answered(asked, sys.argv[1])
    for node in answer["nodes"]:
        if len(node.get("allocations", [])) not in (0, claims, claims + ("pod" in asked)):
            node.pop("allocations")
        if sys.argv[1] == "devices-of-a-row-untold":
            node.pop("allocations", None)
    print(json.dumps(answer), flush=True)
