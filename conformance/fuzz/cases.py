"""A problem on its way through a cluster, and the reference's judgement of what came of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from conformance.compare.judging import judge, judge_undecided
from conformance.errors import UsageError
from conformance.fuzz.placing import Place
from conformance.fuzz.problem import Problem
from conformance.targets.cluster.decisions.snapshots import allocation_of, document
from conformance.targets.seam.values import Obj, selected_node

SAME = ("identical", "admissible", "waits")
UNJUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a problem.

    Attributes:
        verdict: a ``Verdict`` of a decision; ``waits``: so does the reference; ``refused``: an
            object was, which the reference's API server takes; ``not judged``.
        evidence: a decision, or snapshot and pod, with the names of the problem; {} without one.
    """

    problem: Problem
    verdict: str
    reason: str = ""
    evidence: Obj = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        return self.verdict not in (*SAME, UNJUDGED)


@dataclass(slots=True)
class Case:
    """A problem on its way.

    Attributes:
        key: what it has in common with those that can use its nodes.
        kubernetes, gates: of the cluster, as far as they are known.
        pod: as it is created, last of all.
        made: its objects as the server has them, reduced; its nodes first.
        answer: None as long as there is none.
    """

    problem: Problem
    place: Place
    key: str
    kubernetes: str
    gates: Mapping[str, bool]
    pod: Obj = field(default_factory=dict)
    made: list[Obj] = field(default_factory=list)
    answer: Answer | None = None
    _since: float = 0.0
    _missed: Answer | None = None

    @property
    def claims(self) -> list[str]:
        """The names of its pod's claims."""
        return [item["resourceClaimName"] for item in self.pod["spec"]["resourceClaims"]]

    @property
    def nodes(self) -> list[Obj]:
        """The first of what was made."""
        return self.made[: len(self.problem.document["nodes"])]

    def look(self, pod: Obj, claims: Sequence[Obj], settle: float, *, late: bool) -> None:
        """Take the answer from pod and claims as they are now, if they say one.

        Args:
            pod: {} where it was not seen yet; so are claims.
            settle: seconds for which it may be in a state that should pass.
            late: the scheduler has had its time.
        """
        allocations = [allocation_of(claim) for claim in claims]
        node = (pod.get("spec") or {}).get("nodeName", "")
        if all(allocations):
            chosen = [selected_node((one or {}).get("nodeSelector")) for one in allocations]
            node = node or next(filter(None, chosen), "")
            if node or self._is_so_for(settle):
                self._decided(node, [one or {} for one in allocations])
        elif any(
            item.get("type") == "PodScheduled" and item.get("status") == "False"
            for item in (pod.get("status") or {}).get("conditions") or ()
        ):
            if self._missed is None:
                self._waits(pod)
            elif self._is_so_for(settle):
                self.answer = self._missed
        elif late:
            self.answer = Answer(self.problem, UNJUDGED, "the scheduler said nothing of the pod")

    def _is_so_for(self, seconds: float) -> bool:
        self._since = self._since or time.monotonic()
        return time.monotonic() - self._since > seconds

    def _snapshot(self) -> tuple[Obj, list[Obj]]:
        claims = [
            item
            for item in self.made
            if item["kind"] == "ResourceClaim" and not allocation_of(item)
        ]
        return document(self.kubernetes, self.gates, self.made, claims), claims

    def _decided(self, node: str, allocations: list[Obj]) -> None:
        snapshot, claims = self._snapshot()
        evidence = self.place.generic(
            {
                "pod": self.place.pod,
                "node": node,
                "claims": claims,
                "allocations": allocations,
                "snapshot": snapshot,
            }
        )
        try:
            found = judge(evidence)
        except UsageError as error:
            self.answer = Answer(self.problem, UNJUDGED, str(error), evidence)
        else:
            self.answer = Answer(self.problem, str(found.verdict), found.reason, evidence)

    def _waits(self, pod: Obj) -> None:
        """The answer, if the reference has the pod wait, too; otherwise what it will be."""
        snapshot, _ = self._snapshot()
        evidence = self.place.generic({"snapshot": snapshot, "pod": pod})
        try:
            found = judge_undecided(evidence)
        except UsageError as error:
            self.answer = Answer(self.problem, UNJUDGED, str(error), evidence)
            return
        if found is None:
            self.answer = Answer(self.problem, "waits", "", evidence)
        else:
            self._missed = Answer(self.problem, str(found.verdict), found.reason, evidence)
