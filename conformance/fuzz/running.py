"""Problems on a real control plane, many at once, and what the reference says of each answer.

All objects of a batch are made before its pods, so that a scheduler decides once. What is decided
is judged as a scenario's decisions are (``conformance.compare.judging``), by the objects as the API
server gave them back; a pod that waits counts as waiting once the reference agrees, or never did.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from conformance.compare.judging import judge, judge_undecided
from conformance.errors import UsageError
from conformance.fuzz.placing import BATCH, Place, nodes_of, same_nodes
from conformance.fuzz.problem import ADMIN_LABEL, Problem
from conformance.kubeapi.api import Api
from conformance.kubeapi.informer import Informer
from conformance.kubeapi.informers import LONGEST, Changes, InformerFactory
from conformance.targets.cluster.decisions.snapshots import allocation_of, document, reduced
from conformance.targets.cluster.objects.creator import Creator, HollowNodes
from conformance.targets.cluster.objects.ownership import owned
from conformance.targets.seam.values import RUN_LABEL, ApiError, Obj, selected_node

DRA = "resource.k8s.io/v1"
SETTLE = 8.0  # Seconds for which a pod that the reference could place may wait.
DECIDE = 30.0  # Seconds within which a scheduler says something of a pod.
_GONE = 120.0
_RENEWAL = 20.0  # The node lifecycle controller's grace is 40 s, and 50 s since 1.32.
_AT_ONCE = 8
_OBJECTS = (("v1", "Pod"), (DRA, "ResourceClaim"), (DRA, "ResourceSlice"), (DRA, "DeviceClass"))

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
class _Case:
    """A problem on its way.

    Attributes:
        made: its objects as the server has them, reduced; its nodes first.
        since: when it was first seen in a state that should pass.
    """

    problem: Problem
    place: Place
    key: str
    pod: Obj = field(default_factory=dict)
    made: list[Obj] = field(default_factory=list)
    since: float = 0.0
    missed: Answer | None = None
    answer: Answer | None = None

    def is_so_for(self, seconds: float) -> bool:
        """Whether it is in a state that should pass, and was so long ago."""
        self.since = self.since or time.monotonic()
        return time.monotonic() - self.since > seconds


class Runner:
    """Gives problems to one cluster. Safe for threads.

    Args:
        gates: feature gates that are known, for the snapshots.
        run: the label of all that is made.
    """

    def __init__(self, api: Api, kubernetes: str, gates: Mapping[str, bool], run: str) -> None:
        self._api = api
        self._kubernetes, self._gates, self._run = kubernetes, gates, run
        self._namespace = f"dra-fuzz-{run}"
        self._hollow = HollowNodes(api.connection, _RENEWAL)
        self._creator = Creator(api, self._hollow, self._namespace)
        self._informers = InformerFactory(api.connection, self._namespace)
        self._lock = threading.Lock()
        self._free: dict[str, list[tuple[str, list[Obj]]]] = defaultdict(list)
        self._numbers = count()
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="fuzz")

    @contextmanager
    def opened(self) -> Iterator[Runner]:
        """Have a namespace to run in; all that was made is gone at the end.

        Raises ApiError or TargetError: it could not be made, or what is left not be removed.
        """
        try:
            labels = {RUN_LABEL: self._run, **ADMIN_LABEL}
            self._create({"metadata": {"name": self._namespace, "labels": labels}}, "Namespace")
            for api_version, kind in _OBJECTS[:2]:
                self._informer(api_version, kind)
            yield self
        finally:
            self._pool.shutdown(cancel_futures=True)
            self._informers.stop()
            self._hollow.close()
            self._clean()

    def answer(
        self, problems: Sequence[Problem], settle: float = SETTLE, decide: float = DECIDE
    ) -> list[Answer]:
        """What the cluster does with each of some problems, which are there at the same time.

        Args:
            settle: seconds for which a pod that the reference could place may wait.
            decide: seconds within which the scheduler says something of a pod.

        Raises ApiError: a request was refused for another reason than its object; TargetError.
        """
        batch = f"b{next(self._numbers)}"
        cases = [self._case(problem, batch) for problem in problems]
        try:
            list(self._pool.map(self._publish, cases))
            list(self._pool.map(self._start, cases))
            self._await(cases, settle, decide)
        finally:
            self._remove(f"{RUN_LABEL}={self._run},{BATCH}={batch}")
            with self._lock:
                for case in cases:
                    self._free[case.key].append((case.place.team, case.made[: _nodes(case)]))
        return [case.answer for case in cases if case.answer is not None]

    def stop(self) -> None:
        """Wait for no further answer: what is not known is not judged."""
        self._stopping.set()

    # -- making ---------------------------------------------------------------------------------

    def _case(self, problem: Problem, batch: str) -> _Case:
        key = same_nodes(problem.document)
        number = next(self._numbers)
        with self._lock:
            team, nodes = (
                self._free[key].pop() if self._free[key] else (f"fuzz-{self._run}-{number}", [])
            )
        labels = {RUN_LABEL: self._run, BATCH: batch}
        place = Place(f"x{number}x{self._run}", team, self._namespace, labels)
        if not nodes:
            wanted = nodes_of(problem.document, team, self._run)
            nodes = [reduced(self._create(node, "Node")) for node in wanted]
        return _Case(problem, place, key, made=list(nodes))

    def _publish(self, case: _Case) -> None:
        """Make all objects of a problem but its pod."""
        try:
            for obj in case.place.objects(case.problem.document):
                if obj["kind"] == "Pod":
                    case.pod = obj
                    return
                made = self._create(obj, obj["kind"])
                if "status" in obj:
                    made = self._write_status(made, obj["status"])
                case.made.append(reduced(made))
        except ApiError as error:
            self._refused(case, obj, error)

    def _start(self, case: _Case) -> None:
        if case.answer is None:
            try:
                self._create(case.pod, "Pod")
            except ApiError as error:
                self._refused(case, case.pod, error)

    def _refused(self, case: _Case, obj: Obj, error: ApiError) -> None:
        if error.code not in (400, 403, 422):
            raise error
        said = case.place.generic({"text": f"{obj['kind']}: {error.message}"})["text"]
        case.answer = Answer(case.problem, "refused", said)

    def _create(self, obj: Obj, kind: str) -> Obj:
        api_version = DRA if kind in _DRA_KINDS else "v1"
        obj = {"apiVersion": api_version, "kind": kind, **obj}
        resource = self._api.discovery.find(api_version, kind)
        return self._creator.create(resource, obj["metadata"].get("namespace"), obj)

    def _write_status(self, claim: Obj, status: Obj) -> Obj:
        resource = self._api.discovery.find(DRA, "ResourceClaim")
        path = resource.path(self._namespace, claim["metadata"]["name"], "status")
        found: Obj = self._api.connection.request("PUT", path, None, {**claim, "status": status})
        return found

    # -- judging --------------------------------------------------------------------------------

    def _await(self, cases: Sequence[_Case], settle: float, decide: float) -> None:
        """Wait for every answer."""
        changes = Changes()
        for api_version, kind in _OBJECTS[:2]:
            changes.attach(self._informer(api_version, kind))
        begun = time.monotonic()
        try:
            while True:
                seen, waited = changes.count, time.monotonic() - begun
                left = [case for case in cases if case.answer is None]
                for case in left:
                    self._look(case, settle, late=waited > decide)
                if all(case.answer is not None for case in cases):
                    return
                if self._stopping.is_set():
                    return
                changes.wait(seen, begun + decide + LONGEST)
        finally:
            changes.detach()

    def _look(self, case: _Case, settle: float, *, late: bool) -> None:
        pods = self._informer("v1", "Pod").store
        claims = self._informer(DRA, "ResourceClaim").store
        pod = pods.get(self._namespace, case.place.pod) or {}
        names = [item["resourceClaimName"] for item in case.pod["spec"]["resourceClaims"]]
        now = [claims.get(self._namespace, name) or {} for name in names]
        allocations = [allocation_of(claim) for claim in now]
        node = (pod.get("spec") or {}).get("nodeName", "")
        if all(allocations):
            chosen = [selected_node((one or {}).get("nodeSelector")) for one in allocations]
            node = node or next(filter(None, chosen), "")
            if node or case.is_so_for(settle):
                self._decided(case, node, [one or {} for one in allocations])
        elif any(
            item.get("type") == "PodScheduled" and item.get("status") == "False"
            for item in (pod.get("status") or {}).get("conditions") or ()
        ):
            if case.missed is None:
                self._waiting(case, pod)
            elif case.is_so_for(settle):
                case.answer = case.missed
        elif late:
            case.answer = Answer(case.problem, UNJUDGED, "the scheduler said nothing of the pod")

    def _snapshot(self, case: _Case) -> tuple[Obj, list[Obj]]:
        claims = [
            item
            for item in case.made
            if item["kind"] == "ResourceClaim" and not allocation_of(item)
        ]
        return document(self._kubernetes, self._gates, case.made, claims), claims

    def _decided(self, case: _Case, node: str, allocations: list[Obj]) -> None:
        snapshot, claims = self._snapshot(case)
        evidence = case.place.generic(
            {
                "pod": case.place.pod,
                "node": node,
                "claims": claims,
                "allocations": allocations,
                "snapshot": snapshot,
            }
        )
        try:
            found = judge(evidence)
        except UsageError as error:
            case.answer = Answer(case.problem, UNJUDGED, str(error), evidence)
        else:
            case.answer = Answer(case.problem, str(found.verdict), found.reason, evidence)

    def _waiting(self, case: _Case, pod: Obj) -> None:
        """The answer, if the reference has the pod wait, too; otherwise what it will be."""
        snapshot, _ = self._snapshot(case)
        evidence = case.place.generic({"snapshot": snapshot, "pod": pod})
        try:
            found = judge_undecided(evidence)
        except UsageError as error:
            case.answer = Answer(case.problem, UNJUDGED, str(error), evidence)
            return
        if found is None:
            case.answer = Answer(case.problem, "waits", "", evidence)
        else:
            case.missed = Answer(case.problem, str(found.verdict), found.reason, evidence)

    # -- removing -------------------------------------------------------------------------------

    def _remove(self, selector: str) -> None:
        """Delete all objects of a batch; the claims that are in use go when their pods have."""
        for api_version, kind in _OBJECTS:
            self._delete_all(api_version, kind, selector)

    def _delete_all(self, api_version: str, kind: str, selector: str) -> None:
        path = self._api.discovery.find(api_version, kind).path(self._namespace)
        query = {"labelSelector": selector}
        body = {"gracePeriodSeconds": 0} if kind == "Pod" else None
        # Cut off, it goes on where it was.
        self._api.connection.request("DELETE", path, query, body, patience=_GONE)

    def _clean(self) -> None:
        """Remove all that was made, and wait until it is gone."""
        selector = f"{RUN_LABEL}={self._run}"
        self._remove(selector)
        self._delete_all("v1", "Node", selector)
        namespaces = self._api.discovery.find("v1", "Namespace")
        if self._api.read(namespaces, None, self._namespace) is not None:
            self._api.connection.request("DELETE", namespaces.path(None, self._namespace))
        end = time.monotonic() + _GONE
        while owned(self._api, self._run) and time.monotonic() < end:
            time.sleep(0.5)

    def _informer(self, api_version: str, kind: str) -> Informer:
        return self._informers.informer(
            self._api.discovery.find(api_version, kind), self._namespace
        )


_DRA_KINDS = frozenset(kind for _, kind in _OBJECTS[1:])


def _nodes(case: _Case) -> int:
    return len(case.problem.document["nodes"])
