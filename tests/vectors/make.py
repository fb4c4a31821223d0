"""Writes the vectors: questions whose answers Kubernetes' own allocator has confirmed.

    python -m tests.vectors.make --oracles build/oracle

Some are written by hand (`written`); the others are drawn at random until each rule has decided
some both ways, and made as small as the rule still decides. A vector names the minors of Kubernetes
whose allocator, built by `ci/upstream/build`, gave the answer that the reference gives;
``--confirm`` asks those that are there now about the vectors that are written.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from conformance.allocators.check import make_validity
from conformance.allocators.features import features_of
from conformance.allocators.judging import (
    Finding,
    answer_of_reference,
    explain_finding,
    fits_of,
    following_of,
    question_of_pod,
)
from conformance.allocators.questions import VECTORS, Vector, draw_question
from conformance.fuzz.problem import Generator
from conformance.fuzz.shrink_json import shrink
from kube.base.text import one_line
from reference_allocator.gates import LATEST, MINORS
from tests.oracle.knobs import KNOBS
from tests.oracle.upstream import Upstream, ask, open_upstream
from tests.vectors.choices import TooManyChoicesError, only_devices
from tests.vectors.rows import ROWS
from tests.vectors.rules import RULES
from tests.vectors.written import API, WRITTEN

Json = dict[str, Any]

_ALPHA: Final = dict.fromkeys(
    (
        "DRAListTypeAttributes",
        "DRADerivedAttributes",
        "DRADeviceCompatibilityGroups",
        "NodeDeclaredFeatures",
        "DRAOptionalNodeOperations",
    ),
    True,
)
HAND_MADE: Final = (*WRITTEN, *RULES, *ROWS)
"""The vectors that are written by hand."""

_SEED: Final = "vector"
_LONGEST: Final = 2500
"""Bytes of the longest question that is kept."""

SOURCES: Final[Mapping[str, str]] = {
    "several claims": "PodSpec.resourceClaims",
    "several devices": "ExactDeviceRequest.count",
    "allocationMode All": "ExactDeviceRequest.allocationMode",
    "later alternatives": "DeviceRequest.firstAvailable",
    "admin access": "ExactDeviceRequest.adminAccess",
    "admin access of others": "DeviceRequestAllocationResult.adminAccess",
    "devices in use": "ResourceClaimStatus.allocation",
    "shares in use": "DeviceRequestAllocationResult.shareID",
    "capacity in use": "DeviceRequestAllocationResult.consumedCapacity",
    "class selectors": "DeviceClassSpec.selectors",
    "request selectors": "ExactDeviceRequest.selectors",
    "requests of a constraint": "DeviceConstraint.requests",
    "matchAttribute": "DeviceConstraint.matchAttribute",
    "distinctAttribute": "DeviceConstraint.distinctAttribute",
    "derived attributes": "ExactDeviceRequest.derivedAttributes",
    "list attributes": "DeviceAttribute",
    "taints": "Device.taints",
    "taint effect None": "DeviceTaint.effect",
    "tolerations": "ExactDeviceRequest.tolerations",
    "toleration effect": "DeviceToleration.effect",
    "toleration value": "DeviceToleration.value",
    "capacity requests": "ExactDeviceRequest.capacity",
    "shareable devices": "Device.allowMultipleAllocations",
    "request policy": "DeviceCapacity.requestPolicy",
    "policy default": "CapacityRequestPolicy.default",
    "policy minimum": "CapacityRequestPolicyRange.min",
    "policy maximum": "CapacityRequestPolicyRange.max",
    "policy step": "CapacityRequestPolicyRange.step",
    "policy values": "CapacityRequestPolicy.validValues",
    "counters": "Device.consumesCounters",
    "compatibility groups": "DeviceCounterConsumption.compatibilityGroups",
    "skipNodeOperations": "ResourceSliceSpec.skipNodeOperations",
    "declared features": "NodeStatus.declaredFeatures",
    "node selectors of slices": "ResourceSliceSpec.nodeSelector",
    "node selection per device": "ResourceSliceSpec.perDeviceNodeSelection",
    "generations": "ResourcePool.generation",
    "number of slices": "ResourcePool.resourceSliceCount",
}
"""Rule of `tests.oracle.knobs` that can decide whether claims fit -> the API's text on it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the file; 1 where an answer of the latest minor is not confirmed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--oracles", type=Path, default=Path("build/oracle"))
    parser.add_argument("--tried", type=int, default=6000, help="how many questions are drawn")
    parser.add_argument("--each", type=int, default=3, help="how many for each rule and answer")
    parser.add_argument("--confirm", action="store_true", help="draw none")
    options = parser.parse_args(arguments)
    programs = {
        minor: open_upstream(file)
        for minor in MINORS
        if (file := options.oracles / f"allocate-{minor}").exists()
    }
    candidates = [*_written()]
    if options.confirm:
        hand_made = {item.id for item in HAND_MADE}
        candidates += [item for item in read_vectors() if item.id not in hand_made]
    else:
        candidates += _drawn(options.tried, options.each)
    lines, refused = list[str](), 0
    for vector in candidates:
        confirmed = vector.model_copy(update={"kubernetes": _confirm(vector, programs)})
        if LATEST not in confirmed.kubernetes:
            refused += 1
            sys.stdout.write(f"{vector.id}: not what Kubernetes {LATEST} answers\n")
            continue
        lines.append(_with_devices(confirmed, programs).to_line())
    for program in programs.values():
        program.close()
    VECTORS.parent.mkdir(exist_ok=True)
    VECTORS.write_text("".join(lines), encoding="utf-8")
    sys.stdout.write(f"{len(lines)} vectors, confirmed by {', '.join(programs)}\n")
    return 1 if refused else 0


def read_vectors() -> list[Vector]:
    """The vectors that are written."""
    lines = VECTORS.read_text(encoding="utf-8").splitlines()
    return [Vector.model_validate_json(line) for line in lines]


Expected = tuple[dict[str, bool], dict[str, list[bool]]]
"""Node -> whether the first pod fits it; node -> whether those that follow do."""


def outcomes(answer: Json) -> Expected:
    """What an answer says of nodes, as a vector has it."""
    return fits_of(answer), following_of(answer)


def expected_of(vector: Vector) -> Expected:
    """What a vector says of its nodes."""
    return vector.expected, vector.following


def _confirm(vector: Vector, programs: Mapping[str, Upstream]) -> list[str]:
    """The minors in which Kubernetes' allocator and the reference give the vector's answer."""
    return [
        minor
        for minor, program in programs.items()
        if outcomes(ask(program, vector.question)) == expected_of(vector)
        and outcomes(answer_of_reference(vector.question, minor)) == expected_of(vector)
    ]


def _with_devices(vector: Vector, programs: Mapping[str, Upstream]) -> Vector:
    """The vector with the devices that are the only right ones in each of its minors."""
    found: list[Json] = []
    try:
        for minor in vector.kubernetes:
            reference = answer_of_reference(vector.question, minor)
            found.append(only_devices(vector.question, reference, minor))
    except TooManyChoicesError:
        sys.stdout.write(f"{vector.id}: too many choices of devices to try them all\n")
        found = [{}]
    known = found[0] if all(item == found[0] for item in found) else {}
    told = Vector.model_validate(
        vector.model_dump(exclude={"devices", "following_devices"}) | known
    )
    for minor in vector.kubernetes:
        for node, _ in told.find_other_devices(ask(programs[minor], vector.question)):
            raise AssertionError(f"{vector.id}: Kubernetes {minor} has other devices on {node}")
    return told


def _written() -> Iterator[Vector]:
    for item in HAND_MADE:
        asked = {"id": item.id, **item.question}
        following = {"node-0": list(item.following)} if item.following else {}
        yield _vector(asked, item.sentence, item.source, ({"node-0": item.fits}, following))


def _vector(asked: Json, sentence: str, source: str, expected: Expected) -> Vector:
    return Vector(
        id=asked["id"],
        contract="allocation/v1",
        kubernetes=[],
        features=list(features_of(asked)),
        sentence=sentence,
        source=source,
        question=asked,
        expected=expected[0],
        following=expected[1],
    )


def _drawn(tried: int, each: int) -> Iterator[Vector]:
    """Vectors for each rule that decides, both for what fits and for what does not."""
    missing = Counter({(rule, fits): each for rule in SOURCES for fits in (True, False)})
    for number in range(tried):
        generator = _generators()[number % 2]
        question = draw_question(generator, _SEED, number)
        question["nodes"] = question["nodes"][:1]
        question.pop("following", None)  # rows are written by hand
        answer = outcomes(answer_of_reference(question))
        if len(answer[0]) != 1:
            continue
        fits = all(answer[0].values())
        for rule in SOURCES:
            if missing[rule, fits] > 0 and _decides(rule, question, answer):
                small = _shrink(generator, rule, question, answer)
                if len(json.dumps(small)) <= _LONGEST:
                    missing[rule, fits] -= 1
                    yield _describe(rule, fits, each - missing[rule, fits], small)
                break
        if not +missing:
            break
    for (rule, fits), number in sorted((+missing).items()):
        sys.stdout.write(f"{rule}, {'fits' if fits else 'does not fit'}: {number} not found\n")


_MADE: list[Generator] = []


def _generators() -> list[Generator]:
    """With default gates, and with those of alpha features."""
    if not _MADE:
        _MADE.extend((Generator(LATEST, {}), Generator(LATEST, _ALPHA)))
    return _MADE


def _decides(rule: str, question: Json, answer: Expected) -> bool:
    """Whether the answer would be another without a rule."""
    changed = json.loads(json.dumps(question))
    KNOBS[rule](changed)
    return changed != question and outcomes(answer_of_reference(changed)) != answer


def _shrink(generator: Generator, rule: str, question: Json, answer: Expected) -> Json:
    """The smallest question that the rule still decides, in the same way."""
    kept = {name: question[name] for name in ("id", "features")}
    is_valid = make_validity(generator, question)
    right = [node["outcome"] for node in answer_of_reference(question)["nodes"]]

    def still_decides(candidate: Json) -> bool:
        asked: Json = {
            "slices": [],
            "claims": [],
            "allocated": [],
            "deviceClasses": [],
            "nodes": [],
        }
        asked |= candidate | kept
        try:
            given = answer_of_reference(asked)
            same = [node["outcome"] for node in given.get("nodes", ())] == right
            return same and _decides(rule, asked, answer) and is_valid(candidate)
        except (KeyError, TypeError, AttributeError):
            return False  # what was taken away is needed to ask

    parts = {name: value for name, value in question.items() if name not in kept}
    return kept | shrink(parts, still_decides)


def _describe(rule: str, fits: bool, number: int, question: Json) -> Vector:
    named = rule.lower().replace(" ", "-")
    asked = {**question, "id": f"{named}-{'yes' if fits else 'no'}-{number}"}
    (node, outcome), *_ = (
        (item["node"], item["outcome"]) for item in answer_of_reference(asked)["nodes"]
    )
    alone = question_of_pod(asked, asked["nodes"][0], ())
    finding = Finding(node, "wrong no" if fits else "wrong yes", "", outcome, question=alone)
    explained = explain_finding(finding).partition(": ")[2]
    verb = "decides" if not rule.endswith("s") or rule == "taint effect None" else "decide"
    sentence = one_line(f"{rule[0].upper()}{rule[1:]} {verb}: {explained}", 400)
    return _vector(asked, sentence, f"{API}{SOURCES[rule]}", ({node: fits}, {}))


if __name__ == "__main__":
    sys.exit(main())
