"""The questions that a program is asked: random ones, those of a file, the shipped vectors.

A random one is drawn as `dra-conformance fuzz` draws problems, from a seed and a number alone, and
its objects are such that an API server takes them. Some ask for a pod that shares a claim which has
its devices already, and some for a node that is to be made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import IO, Any, Final, Literal

from pydantic import BaseModel, Field, ValidationError

from conformance.allocators.contract import AllocationQuestion, WrittenVector
from conformance.allocators.features import features_of
from conformance.allocators.judging import ClaimDevices, answer_of_reference, devices_of
from conformance.data import scenarios_dir
from conformance.fuzz.problem import Generator, claims_of, resources_of, snapshot_of
from kube.base.errors import UsageError
from kube.base.text import join_some
from reference_allocator.api.reading import InputError
from reference_allocator.gates import LATEST
from reference_allocator.wire import CONTRACT, MAX_LINE
from reference_allocator.wire.lines import check_form

Json = dict[str, Any]

VECTORS: Final = scenarios_dir() / "vectors" / "allocation.ndjson"
"""The shipped vectors."""

MAX_FILE: Final = 1024 * 1024 * 1024
"""Bytes of a file of questions."""

SHAPES: Final = {
    "slices": "resource/v1.ResourceSlice",
    "deviceClasses": "resource/v1.DeviceClass",
    "nodes": "core/v1.Node",
    "claims": "resource/v1.ResourceClaim",
    "allocated": "resource/v1.ResourceClaim",
}
"""Field of a question -> the shape of its objects (`check_form`)."""

_NAMED: Final = ("core/v1.Node", "resource/v1.ResourceClaim")
_LISTS: Final = ("slices", "deviceClasses", "nodes", "allocated")
_SHARED_CLAIM, _TEMPLATE = 6, 6
"""Once in so many random questions, where it can be asked."""


class Vector(WrittenVector):
    """A question whose answer is written down, for the unit tests of others."""

    contract: str = Field(CONTRACT, description="the contract of question and answer")
    kubernetes: list[str] = Field(description="the minors for which the answer is right")
    features: list[str] = Field(description="what of DRA the question is about")
    sentence: str = Field(description="what is right, in one sentence")
    source: str = Field("", description="where the rule is written")
    question: Json = Field(description="what an allocator is asked")
    expected: dict[str, bool] = Field(description="node -> whether the (first) pod fits it")
    following: dict[str, list[bool]] = Field(
        default_factory=dict,
        description="node -> whether each pod that follows fits beside those before it",
    )
    devices: dict[str, ClaimDevices] = Field(
        default_factory=dict,
        description="node -> the devices of each claim of the (first) pod as driver/pool/device, in"
        " any order; where `level` says nothing else, no others are right",
    )
    following_devices: dict[str, list[ClaimDevices]] = Field(
        default_factory=dict,
        alias="followingDevices",
        description="node -> the same for each pod that follows; empty for one that does not fit",
    )
    level: Literal["admissible", "identical"] = Field(
        default="admissible",
        description="the level of a check from which these devices count. admissible: no others are"
        " right; identical: others may be, and these are those that Kubernetes takes",
    )

    def find_other_devices(self, answer: Json) -> Iterator[tuple[str, int]]:
        """Yield each node and pod, 0 for the first, that an answer gives other devices.

        Pods that do not fit, by the answer, and those that the vector says nothing of, have none.
        """
        for node, pods in devices_of(answer).items():
            written = [self.devices.get(node, []), *self.following_devices.get(node, [])]
            for number, (given, right) in enumerate(zip(pods, written, strict=False)):
                if right and given not in (None, [sorted(claim) for claim in right]):
                    yield node, number


def write_devices(answer: Json) -> Json:
    """Return the fields of a vector that name the devices of an answer; none if it has none."""
    found = {node: [pod or [] for pod in pods] for node, pods in devices_of(answer).items()}
    fields = {
        "devices": {node: pods[0] for node, pods in found.items() if pods[0]},
        "followingDevices": {node: pods[1:] for node, pods in found.items() if any(pods[1:])},
    }
    return {name: nodes for name, nodes in fields.items() if nodes}


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question and its number among those of one check, and the vector that it is of, if any."""

    number: int
    question: Json
    vector: Vector | None = None

    @property
    def id(self) -> str:
        """The question's id."""
        return str(self.question["id"])


def draw_questions(kubernetes: str, seed: str, first: int, count: int) -> Iterator[AskedQuestion]:
    """Yield random questions; the same arguments give the same ones."""
    generator = Generator(kubernetes, {})
    for number in range(first, first + count):
        yield AskedQuestion(number, draw_question(generator, seed, number))


def draw_question(generator: Generator, seed: str, number: int) -> Json:
    """Draw the question with a number."""
    document = snapshot_of(generator.draw(seed, number).document)
    by_name = {claim["metadata"]["name"]: claim for claim in document["claims"]}
    first, *others = [_asked_pod(pod, by_name) for pod in document["pods"]]
    question: Json = {
        "id": f"{seed}-{number}",
        "features": {name: True for name, is_on in document["features"].items() if is_on},
        **{field: list(document[field]) for field in _LISTS},
        **first,
        **({"following": others} if others else {}),
    }
    for item in question["slices"]:
        for device in item["spec"].get("devices") or ():
            # Its gate is off in every minor, and an API server drops the field then.
            device.pop("nodeAllocatableResources", None)
    random = Random(f"{seed}-{number}-asked")  # noqa: S311 -- what it draws are no secrets
    if random.randrange(_SHARED_CLAIM) == 0:
        question["claims"] = _give_devices(question, generator.kubernetes)
    elif random.randrange(_TEMPLATE) == 0 and not question["allocated"]:
        # What is not there yet is neither in use nor being updated.
        question |= {} if "updating" in features_of(question) else {"place": "template"}
    return question


def _asked_pod(pod: Json, claims: Mapping[str, Json]) -> Json:
    """Return the claims of a drawn pod, and itself where it asks for extended resources."""
    asked: Json = {"claims": [claims[name] for name in claims_of(pod) if name in claims]}
    if resources_of(pod):
        for kind in ("initContainers", "containers"):
            for container in pod["spec"].get(kind, ()):
                resources = container.get("resources", {})
                amounts = {name: str(count) for name, count in resources.get("limits", {}).items()}
                container["resources"] = {"limits": amounts, "requests": amounts}
        asked["pod"] = pod
    return asked


def _give_devices(question: Json, kubernetes: str) -> list[Json]:
    """Return the claims, the first of which has what the reference gives it on the first node."""
    first, *others = question["claims"] or [None]
    if first is None:
        return []
    alone = {key: value for key, value in question.items() if key not in ("pod", "following")}
    answer = answer_of_reference({**alone, "claims": [first]}, kubernetes)
    for node in answer.get("nodes", ()):
        if node["outcome"] == "allocated":
            return [{**first, "status": {"allocation": node["allocations"][0]}}, *others]
    return [first, *others]


def read_questions(file: Path, kubernetes: str = LATEST) -> list[AskedQuestion]:
    """Read a file of questions, or of vectors, one JSON object a line.

    Vectors of other Kubernetes minors are left out.
    Raises UsageError: it cannot be read, or a line is neither; names the line.
    """
    try:
        with file.open("rb") as stream:
            read = [(where, _read_line(where, line)) for where, line in _read_lines(file, stream)]
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    asked: list[AskedQuestion] = []
    minors: set[str] = set()
    for where, item in read:
        if not isinstance(item, Vector):
            asked.append(AskedQuestion(len(asked), item))
        elif kubernetes in item.kubernetes:
            asked.append(AskedQuestion(len(asked), item.question, item))
        else:
            minors.update(item.kubernetes)
            continue
        _check_objects(where, asked[-1].question)
    if not asked:
        which = f" for Kubernetes {kubernetes}, but for {join_some(sorted(minors))}"
        raise UsageError(f"{file}: has no questions{which if minors else ''}")
    return asked


def _read_lines(file: Path, stream: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield where each line is and the line, but for empty ones. Raises UsageError: too long."""
    number = size = 0
    while line := stream.readline(MAX_LINE + 1):
        number, size = number + 1, size + len(line)
        if len(line) > MAX_LINE:
            raise UsageError(f"{file}:{number}: is longer than {MAX_LINE} bytes")
        if size > MAX_FILE:
            raise UsageError(f"{file}: is larger than {MAX_FILE} bytes; ask it in parts")
        if line.strip():
            yield f"{file}:{number}", line


def _read_line(where: str, line: bytes) -> Vector | Json:
    """Return the vector or the question of a line."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise UsageError(f"{where}: is no JSON; each line is one question") from None
    if isinstance(value, Mapping) and "question" in value:
        return read_vector(where, value)
    if isinstance(value, Mapping) and value.get("contract", CONTRACT) != CONTRACT:
        raise UsageError(_unknown_contract(where, value["contract"]))
    return _validated(AllocationQuestion, where, value)


def _check_objects(where: str, question: Json) -> None:
    """Raise UsageError: an object has not the form of its kind, or lacks its name."""
    for path, shape, value in _objects_of(question):
        try:
            check_form(value, shape)
            if shape in _NAMED and not (value.get("metadata") or {}).get("name"):
                raise InputError("required value", "metadata", "name")
        except InputError as error:
            raise UsageError(f"{where}: {error.with_parent(*path)}") from None


def _objects_of(question: Json) -> Iterator[tuple[tuple[str | int, ...], str, Any]]:
    """Yield the path of each object of a question, its shape, and itself."""
    pods: list[tuple[tuple[str | int, ...], Json]] = [((), question)]
    pods += [(("following", index), pod) for index, pod in enumerate(question.get("following", ()))]
    for path, pod in pods:
        if pod.get("pod") is not None:
            yield (*path, "pod"), "core/v1.Pod", pod["pod"]
        for field, shape in SHAPES.items():
            for index, value in enumerate(pod.get(field) or ()):
                yield (*path, field, index), shape, value


def read_vector(where: str, value: object) -> Vector:
    """Read a vector. Raises UsageError: it is none, or of a contract that is not known."""
    contract = value.get("contract", CONTRACT) if isinstance(value, Mapping) else CONTRACT
    if contract != CONTRACT:
        raise UsageError(_unknown_contract(where, contract))
    question = value.get("question") if isinstance(value, Mapping) else None
    if isinstance(question, Mapping) and "expression" in question:
        raise UsageError(f"{where}: is about a selector, which `dra-conformance cel` answers")
    try:
        vector = Vector.model_validate(value)
    except ValidationError as error:
        raise UsageError(f"{where}: {_first_problem(error)}") from None
    _validated(AllocationQuestion, where, vector.question)
    return vector


def _validated(model: type[BaseModel], where: str, value: Any) -> Json:
    try:
        model.model_validate(value)
    except ValidationError as error:
        raise UsageError(f"{where}: {_first_problem(error)}") from None
    checked: Json = value
    return checked


def _unknown_contract(where: str, contract: object) -> str:
    return (
        f"{where}: the contract {str(contract)[:40]!r} is not known; this version knows {CONTRACT}."
        " Update dra-conformance, or take a file of that contract"
    )


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(str(step) for step in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"{path}: is not known; a newer version of dra-conformance may know it"
    return f"{path}: {first['msg']}" if path else str(first["msg"])
