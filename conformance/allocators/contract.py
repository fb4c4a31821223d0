"""The contract "allocation/v1": what a question and its answer look like, one JSON line each.

docs/allocators.md is its page; the JSON Schemas are made of the models here. The objects in a
question are those of resource.k8s.io/v1 and v1, as an API server stores them.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from conformance.allocators.program import ProgramError
from kube.base.text import one_line

Outcome = Literal["allocated", "none", "nodeError", "error", "timeout", "unsupported"]

Json = dict[str, Any]

MAX_ID: Final = 253
"""Characters of a question's id, which is printed."""


class WrittenVector(BaseModel):
    """A question whose answer is written down, as one line of a file."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    id: str = Field(description="stays the same for good")
    contract: str

    def to_document(self) -> Json:
        """Return it as a document of JSON without what is empty; the contract is always there."""
        given = self.model_dump(by_alias=True, exclude_defaults=True)
        return {"id": self.id, "contract": self.contract, **given}

    def to_line(self) -> str:
        """Return it as a line of NDJSON, with its end."""
        return json.dumps(self.to_document(), ensure_ascii=False, separators=(",", ":")) + "\n"


class FollowingPod(BaseModel):
    """A pod that comes after others; it finds in use what those before it were given."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)

    claims: list[Json] = Field(
        default_factory=list,
        description="its ResourceClaims; one that an earlier pod has, too, has the devices that"
        " were allocated for that",
    )
    pod: Json | None = Field(None, description="the Pod, where it asks for extended resources")


class AllocationQuestion(BaseModel):
    """A question: on which nodes can these claims of one pod be allocated, each node by itself?

    A list that is empty may be absent.
    """

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)

    id: str = Field(description="repeated in the answer", max_length=MAX_ID)
    contract: Literal["allocation/v1"] = Field(
        "allocation/v1", description="the version of this contract; absent, it is the first"
    )
    features: dict[str, bool] = Field(
        default_factory=dict,
        description="fields of structured.Features in lowerCamel that are on; absent ones are off",
    )
    slices: list[Json] = Field(default_factory=list, description="all ResourceSlices")
    device_classes: list[Json] = Field(default_factory=list, description="all DeviceClasses")
    nodes: list[Json] = Field(default_factory=list, description="the Nodes that are asked about")
    claims: list[Json] = Field(
        default_factory=list,
        description="the pod's ResourceClaims, in its order; one with status.allocation has its"
        " devices already, which may keep the pod from a node",
    )
    pod: Json | None = Field(
        None,
        description="the Pod, where its containers ask for extended resources: one more claim is"
        " allocated for those that a class provides and the node itself has none of",
    )
    following: list[FollowingPod] = Field(
        default_factory=list, description="the pods that come after it, in order"
    )
    allocated: list[Json] = Field(
        default_factory=list, description="other ResourceClaims: what is in use"
    )
    place: Literal["published", "template"] = Field(
        "published",
        description="template: the nodes are to be made, and slices with their nodeName say what"
        " they will publish",
    )
    allocator: Literal["", "stable", "incubating", "experimental"] = Field(
        "", description="one of Kubernetes' implementations; others leave it aside"
    )
    repeat: int = Field(1, ge=0, description="how often to decide, for measuring; the best counts")


def _empty_for_null(value: object) -> object:
    """Return an empty list for null, which is how Go writes a slice that nobody has made."""
    return [] if value is None else value


_Allocations = Annotated[
    list[Json], BeforeValidator(_empty_for_null, json_schema_input_type=list[Json] | None)
]


class PodAnswer(BaseModel):
    """The answer for one pod on one node."""

    model_config = ConfigDict(strict=True)

    outcome: Outcome = Field(
        description="allocated: it fits; none: it does not; nodeError: this node cannot be decided;"
        " error: nor can any other; timeout: the search was given up; unsupported: not claimed"
    )
    allocations: _Allocations = Field(
        default_factory=list,
        description="an AllocationResult for each claim, in order, that for extended resources last"
        "; needed where pods follow",
    )
    error: str = Field("", description="why, for people")


_PodAnswers = Annotated[
    list[PodAnswer],
    BeforeValidator(_empty_for_null, json_schema_input_type=list[PodAnswer] | None),
]


class NodeAnswer(PodAnswer):
    """The answer for one node: for the first pod, and for those that follow."""

    node: str = Field(description="name of a node of the question")
    ns: int = Field(0, description="nanoseconds of the first decision")
    steps: int = Field(0, description="how many partial solutions were looked at")
    following: _PodAnswers = Field(
        default_factory=list, description="the answer for each pod that follows, in order"
    )

    @property
    def pods(self) -> list[PodAnswer]:
        """The answers for all pods of the question, the first among them."""
        return [self, *self.following]


_NodeAnswers = Annotated[
    list[NodeAnswer],
    BeforeValidator(_empty_for_null, json_schema_input_type=list[NodeAnswer] | None),
]


class AllocationAnswer(BaseModel):
    """An answer: one for each node of the question, or why there is none."""

    model_config = ConfigDict(strict=True)

    id: str = Field(description="that of the question")
    nodes: _NodeAnswers = Field(default_factory=list)
    invalid: str = Field("", description="the line could not be read, and why")
    unsupported: str = Field(
        "", description="what of the question the program does not claim to do"
    )


def read_answer(line: bytes, question: Json) -> AllocationAnswer:
    """Read the answer to a question, with its nodes in the question's order.

    Raises ProgramError: it is no answer, is that of another question, or answers for other nodes
    than those that were asked.
    """
    try:
        answer = AllocationAnswer.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(step) for step in first["loc"])
        where = f"{path}: " if path else ""
        said = one_line(line[:200].decode("utf-8", "replace"), 60)
        raise ProgramError(
            "malformed", f"{where}{first['msg']}; it wrote {said or 'an empty line'}"
        ) from None
    if answer.id != question["id"]:
        raise ProgramError(
            "out of order",
            f"answered {one_line(answer.id, 40)!r} when {question['id']!r} was asked",
        )
    if answer.invalid or answer.unsupported:
        return answer
    asked = [node["metadata"]["name"] for node in question.get("nodes", ())]
    given = {node.node: node for node in answer.nodes}
    strangers = [name for name in given if name not in asked]
    missing = [name for name in asked if name not in given]
    if strangers:
        raise ProgramError("malformed", f"answers for node {strangers[0]!r}, which was not asked")
    if missing:
        raise ProgramError("malformed", f"does not answer for node {missing[0]!r}")
    if len(given) < len(answer.nodes):
        raise ProgramError("malformed", "answers for a node twice")
    for node in answer.nodes:
        _check_row(node, question)
    return answer.model_copy(update={"nodes": [given[name] for name in asked]})


def _check_row(node: NodeAnswer, question: Json) -> None:
    """Raise ProgramError: the answer for a node has too few or too many pods or allocations."""
    pods: list[Json] = [question, *question.get("following", ())]
    where = f"node {node.node}"
    if len(node.pods) != len(pods):
        raise ProgramError(
            "malformed",
            f"{where}: {len(node.following)} answers for {len(pods) - 1} pods that follow",
        )
    for number, (given, pod) in enumerate(zip(node.pods, pods, strict=True)):
        wanted = len(pod.get("claims", ()))
        # Whether extended resources need a claim of their own depends on the node.
        right = (wanted, wanted + 1) if pod.get("pod") else (wanted,)
        made = len(given.allocations) if given.outcome == "allocated" else 0
        if made and made not in right:
            which = f" of pod {number + 1}" if number else ""
            raise ProgramError(
                "malformed", f"{where}: {made} allocations for {wanted} claims{which}"
            )
