"""A problem on its way through a cluster, and the reference's judgement of what came of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from conformance.compare.evidence import claim_names
from conformance.compare.judging import judge, judge_undecided
from conformance.fuzz.isolate_problems import ProblemScope
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
        created: its other objects as the server has them, reduced; its nodes first. Claims are as
            they were when the latest pod came.
        earlier: whether each pod that has come and was judged was scheduled.
        since: when the latest pod was created (``time.monotonic``); 0: it is yet to be.
        answer: None as long as there is none.
    """

    problem: Problem
    scope: ProblemScope
    key: str
    kubernetes: str
    gates: Mapping[str, bool]
    pods: list[Obj] = field(default_factory=list)
    created: list[Obj] = field(default_factory=list)
    earlier: list[bool] = field(default_factory=list)
    since: float = 0.0
    answer: Answer | None = None
    _unsettled_since: float = 0.0
    _missed: tuple[Judgement, Obj] | None = None

    @property
    def pod(self) -> Obj:
        """The pod that came last, or comes next."""
        return self.pods[len(self.earlier)]

    @property
    def nodes(self) -> list[Obj]:
        """The problem's nodes, which were created first."""
        return self.created[: len(self.problem.document["nodes"])]

    def judge_latest_pod(
        self, pod: Obj, claims: Sequence[Obj], settle: float, decide: float
    ) -> None:
        """Judge the latest pod from it and its claims as they are now, if they say something.

        Args:
            pod: {} where it was not seen yet; so are claims.
            settle: seconds for which it may be in a state that should pass.
            decide: seconds within which the scheduler says something.
        """
        allocations = [allocation_of(claim) for claim in claims]
        node = (pod.get("spec") or {}).get("nodeName", "")
        if pod and all(allocations) and not self._lacks_claim(pod):
            chosen = [
                selected_node((allocation or {}).get("nodeSelector")) for allocation in allocations
            ]
            # A pod that waits for binding conditions is nominated, and its claim may name no node.
            nominated = (pod.get("status") or {}).get("nominatedNodeName", "")
            node = node or next(filter(None, chosen), nominated)
            if node or self._has_lasted(settle):
                self._judge_decision(pod, node, claims)
        elif node:
            if self._has_lasted(settle):  # written before the pod was bound, but by another watch
                self._conclude(Verdict.IMPOSSIBLE, "the pod was bound without devices", {})
        elif any(
            item.get("type") == "PodScheduled" and item.get("status") == "False"
            for item in (pod.get("status") or {}).get("conditions") or ()
        ):
            if self._missed is None:
                self._judge_waiting(pod)
            elif self._has_lasted(settle):
                judged, evidence = self._missed
                self._conclude(judged.verdict, judged.reason, evidence)
        elif time.monotonic() - self.since > decide:
            self._conclude(UNJUDGED, "the scheduler said nothing of the pod", {})

    def _has_lasted(self, seconds: float) -> bool:
        self._unsettled_since = self._unsettled_since or time.monotonic()
        return time.monotonic() - self._unsettled_since > seconds

    def _conclude(self, verdict: str, reason: str, evidence: Obj) -> None:
        """Set the answer; or, if there is no difference and another pod to come, go on to that."""
        if verdict not in SAME or len(self.earlier) + 1 == len(self.pods):
            earlier = tuple(self.earlier)
            self.answer = Answer(self.problem, str(verdict), reason, evidence, earlier)
            return
        self.earlier.append(verdict != "waits")
        self.since = self._unsettled_since = 0.0
        self._missed = None

    def _judge_decision(self, pod: Obj, node: str, claims: Sequence[Obj]) -> None:
        now = {claim["metadata"]["name"]: reduce_object(claim) for claim in claims}
        claims_before = {item["metadata"]["name"]: item for item in self.created if _is_claim(item)}
        had = {name: remove_allocation(item) for name, item in now.items()} | claims_before
        open_names = [name for name in now if not allocation_of(had[name])]
        open_claims = [had[name] for name in open_names]
        evidence = self.scope.restore_names(
            {
                "pod": pod["metadata"]["name"],
                "node": node,
                "claims": open_claims,
                "allocations": [allocation_of(now[name]) for name in open_names],
                "snapshot": self._snapshot(open_claims),
            }
        )
        other_objects = [item for item in self.created if item["metadata"]["name"] not in now]
        try:
            judgement = judge(evidence)
        except UsageError as error:
            self._conclude(UNJUDGED, str(error), evidence)
            return
        expected = self._extended_claim(pod)
        requested = [
            item["spec"]["devices"]["requests"] for item in open_claims if item not in self.created
        ]
        self.created = [*other_objects, *now.values()]
        if requested != ([expected["spec"]["devices"]["requests"]] if expected else []):
            reason = "the claim for extended resources does not ask for what the pod wants"
            self._conclude(Verdict.INADMISSIBLE, reason, evidence)
        else:
            self._conclude(judgement.verdict, judgement.reason, evidence)

    def _judge_waiting(self, pod: Obj) -> None:
        """Judge that the pod waits; if the reference would not have it wait, it may be early."""
        claims = {item["metadata"]["name"]: item for item in self.created if _is_claim(item)}
        named = [claims[name] for name in claim_names(pod) if name in claims]
        open_claims = [item for item in named if not allocation_of(item)]
        extended = self._extended_claim(pod)
        if extended is not None:
            open_claims.append(extended)
        evidence = self.scope.restore_names({"snapshot": self._snapshot(open_claims), "pod": pod})
        try:
            judgement = judge_undecided(evidence)
        except UsageError as error:
            self._conclude(UNJUDGED, str(error), evidence)
            return
        if judgement is None:
            self._conclude("waits", "", evidence)
        else:
            self._missed = judgement, evidence

    def _snapshot(self, claims: Sequence[Obj]) -> Obj:
        return make_snapshot(self.kubernetes, self.gates, self.created, claims)

    def _extended_claim(self, pod: Obj) -> Obj | None:
        """Return the claim for a pod's extended resources; no node has any of its own."""
        classes = [item for item in self.created if item["kind"] == "DeviceClass"]
        extended = extended_claim(pod, {}, classes_by_resource(classes))
        if extended is None:
            return None
        name = f"{pod['metadata']['name']}-extended-resources"
        metadata = {**extended.claim["metadata"], "name": name, "uid": name}
        return {**extended.claim, "metadata": metadata, "status": {}}

    def _lacks_claim(self, pod: Obj) -> bool:
        """Return whether the claim for the pod's extended resources is not known yet."""
        named = (pod.get("status") or {}).get("extendedResourceClaimStatus")
        return not named and self._extended_claim(pod) is not None


def _is_claim(item: Obj) -> bool:
    return bool(item["kind"] == "ResourceClaim")
