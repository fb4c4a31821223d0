"""A problem on its way through a cluster, and the reference's judgement of what came of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from conformance.compare.evidence import claim_names
from conformance.compare.judging import judge, judge_undecided
from conformance.fuzz.placing import Place
from conformance.fuzz.problem import Problem
from conformance.results.events.comparison import Judgement, Verdict
from conformance.targets.cluster.snapshots import (
    allocation_of,
    make_snapshot,
    reduce_object,
    remove_allocation,
)
from kube.base.errors import UsageError
from kube.values import Obj, selected_node
from reference_allocator.extended import classes_by_resource, extended_claim

SAME = ("identical", "admissible", "waits")
UNJUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a problem: of the first of its pods that shows a difference, else of the last.

    Attributes:
        verdict: a ``Verdict`` of a decision; ``waits``: so does the reference; ``refused``: an
            object was, which the reference's API server takes; ``not judged``.
        evidence: a decision, or snapshot and pod, with the names of the problem; {} without one.
        earlier: whether each pod that came before was scheduled.
    """

    problem: Problem
    verdict: str
    reason: str = ""
    evidence: Obj = field(default_factory=dict)
    earlier: tuple[bool, ...] = ()

    @property
    def differs(self) -> bool:
        return self.verdict not in (*SAME, UNJUDGED)


@dataclass(slots=True)
class Case:
    """A problem on its way.

    Attributes:
        key: what it has in common with those that can use its nodes.
        kubernetes, gates: of the cluster, as far as they are known.
        pods: as they are created, one after the other.
        made: its other objects as the server has them, reduced; its nodes first. Claims are as
            they were when the latest pod came.
        earlier: whether each pod that has come and was judged was scheduled.
        since: when the latest pod was created (``time.monotonic``); 0: it is yet to be.
        answer: None as long as there is none.
    """

    problem: Problem
    place: Place
    key: str
    kubernetes: str
    gates: Mapping[str, bool]
    pods: list[Obj] = field(default_factory=list)
    made: list[Obj] = field(default_factory=list)
    earlier: list[bool] = field(default_factory=list)
    since: float = 0.0
    answer: Answer | None = None
    _so_since: float = 0.0
    _missed: tuple[Judgement, Obj] | None = None

    @property
    def pod(self) -> Obj:
        """The latest that came, or comes next."""
        return self.pods[len(self.earlier)]

    @property
    def nodes(self) -> list[Obj]:
        """The first of what was made."""
        return self.made[: len(self.problem.document["nodes"])]

    def look(self, pod: Obj, claims: Sequence[Obj], settle: float, decide: float) -> None:
        """Judge the latest pod from it and its claims as they are now, if they say something.

        Args:
            pod: {} where it was not seen yet; so are claims.
            settle: seconds for which it may be in a state that should pass.
            decide: seconds within which the scheduler says something.
        """
        allocations = [allocation_of(claim) for claim in claims]
        node = (pod.get("spec") or {}).get("nodeName", "")
        if pod and all(allocations) and not self._lacks_claim(pod):
            chosen = [selected_node((one or {}).get("nodeSelector")) for one in allocations]
            # A pod that waits for binding conditions is nominated, and its claim may name no node.
            nominated = (pod.get("status") or {}).get("nominatedNodeName", "")
            node = node or next(filter(None, chosen), nominated)
            if node or self._is_so_for(settle):
                self._decided(pod, node, claims)
        elif node:
            if self._is_so_for(settle):  # written before the pod was bound, but by another watch
                self._tell(Verdict.IMPOSSIBLE, "the pod was bound without devices", {})
        elif any(
            item.get("type") == "PodScheduled" and item.get("status") == "False"
            for item in (pod.get("status") or {}).get("conditions") or ()
        ):
            if self._missed is None:
                self._waits(pod)
            elif self._is_so_for(settle):
                judged, evidence = self._missed
                self._tell(judged.verdict, judged.reason, evidence)
        elif time.monotonic() - self.since > decide:
            self._tell(UNJUDGED, "the scheduler said nothing of the pod", {})

    def _is_so_for(self, seconds: float) -> bool:
        self._so_since = self._so_since or time.monotonic()
        return time.monotonic() - self._so_since > seconds

    def _tell(self, verdict: str, reason: str, evidence: Obj) -> None:
        """The answer; or, if there is no difference and another pod to come, what is known now."""
        if verdict not in SAME or len(self.earlier) + 1 == len(self.pods):
            earlier = tuple(self.earlier)
            self.answer = Answer(self.problem, str(verdict), reason, evidence, earlier)
            return
        self.earlier.append(verdict != "waits")
        self.since = self._so_since = 0.0
        self._missed = None

    def _decided(self, pod: Obj, node: str, claims: Sequence[Obj]) -> None:
        now = {claim["metadata"]["name"]: reduce_object(claim) for claim in claims}
        before = {item["metadata"]["name"]: item for item in self.made if _is_claim(item)}
        had = {name: remove_allocation(item) for name, item in now.items()} | before
        open_ = [name for name in now if not allocation_of(had[name])]
        wanted = [had[name] for name in open_]
        evidence = self.place.generic(
            {
                "pod": pod["metadata"]["name"],
                "node": node,
                "claims": wanted,
                "allocations": [allocation_of(now[name]) for name in open_],
                "snapshot": self._snapshot(wanted),
            }
        )
        others = [item for item in self.made if item["metadata"]["name"] not in now]
        try:
            found = judge(evidence)
        except UsageError as error:
            self._tell(UNJUDGED, str(error), evidence)
            return
        expected = self._extended(pod)
        asked = [item["spec"]["devices"]["requests"] for item in wanted if item not in self.made]
        self.made = [*others, *now.values()]
        if asked != ([expected["spec"]["devices"]["requests"]] if expected else []):
            reason = "the claim for extended resources does not ask for what the pod wants"
            self._tell(Verdict.INADMISSIBLE, reason, evidence)
        else:
            self._tell(found.verdict, found.reason, evidence)

    def _waits(self, pod: Obj) -> None:
        """Judge that the pod waits; if the reference would not have it wait, it may be early."""
        claims = {item["metadata"]["name"]: item for item in self.made if _is_claim(item)}
        named = [claims[name] for name in claim_names(pod) if name in claims]
        wanted = [item for item in named if not allocation_of(item)]
        extended = self._extended(pod)
        if extended is not None:
            wanted.append(extended)
        evidence = self.place.generic({"snapshot": self._snapshot(wanted), "pod": pod})
        try:
            found = judge_undecided(evidence)
        except UsageError as error:
            self._tell(UNJUDGED, str(error), evidence)
            return
        if found is None:
            self._tell("waits", "", evidence)
        else:
            self._missed = found, evidence

    def _snapshot(self, claims: Sequence[Obj]) -> Obj:
        return make_snapshot(self.kubernetes, self.gates, self.made, claims)

    def _extended(self, pod: Obj) -> Obj | None:
        """The claim for a pod's extended resources; no node has any of its own."""
        classes = [item for item in self.made if item["kind"] == "DeviceClass"]
        found = extended_claim(pod, {}, classes_by_resource(classes))
        if found is None:
            return None
        name = f"{pod['metadata']['name']}-extended-resources"
        metadata = {**found.claim["metadata"], "name": name, "uid": name}
        return {**found.claim, "metadata": metadata, "status": {}}

    def _lacks_claim(self, pod: Obj) -> bool:
        """Whether the claim for its extended resources is not known yet."""
        named = (pod.get("status") or {}).get("extendedResourceClaimStatus")
        return not named and self._extended(pod) is not None


def _is_claim(item: Obj) -> bool:
    return bool(item["kind"] == "ResourceClaim")
