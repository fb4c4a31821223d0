"""Problems on a real control plane, many at once, and what the reference says of each answer.

All objects of a batch are made before its pods, so that a scheduler decides once, and a problem's
pods come one after the other, so that each decision has one cluster that it can be judged by. What
is decided is judged as a scenario's decisions are (``conformance.compare.judging``), by the objects
as the API server gave them back; a pod that waits counts as waiting once the reference agrees.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count

from conformance.compare.evidence import claim_names
from conformance.fuzz.cases import Answer, Case
from conformance.fuzz.isolate_problems import BATCH, ProblemScope, nodes_key, nodes_of
from conformance.fuzz.problem import ADMIN_LABEL, Problem
from conformance.targets.cluster.creator import Creator, HollowNodes
from conformance.targets.cluster.ownership import list_owned
from conformance.targets.cluster.snapshots import reduce_object
from kube.api import Api
from kube.base.errors import TargetError
from kube.errors import ApiError
from kube.informer import Informer
from kube.informers import LONGEST, Changes, InformerFactory
from kube.nodes import RUN_LABEL
from kube.values import Obj

DRA = "resource.k8s.io/v1"
SETTLE = 8.0  # Seconds for which a pod that the reference could place may wait.
DECIDE = 30.0  # Seconds within which a scheduler says something of a pod.
_GONE = 120.0
_RENEWAL = 20.0  # The node lifecycle controller's grace is 40 s, and 50 s since 1.32.
_AT_ONCE = 8
_FOLLOWED = (("v1", "Pod"), (DRA, "ResourceClaim"))


class Runner:
    """Gives problems to one cluster. Safe for threads.

    Args:
        kubernetes: the scheduler's version, by whose rules answers are judged.
        gates: its feature gates that are known, for the snapshots.
        run: the label of all that is made.
        scheduler: ``spec.schedulerName`` of the pods; empty: the cluster's default scheduler.
    """

    def __init__(
        self,
        api: Api,
        kubernetes: str,
        gates: Mapping[str, bool],
        run: str,
        scheduler: str = "",
    ) -> None:
        self._api, self._scheduler = api, scheduler
        self._kubernetes, self._gates, self._run = kubernetes, gates, run
        self._namespace = f"dra-fuzz-{run}"
        self._hollow = HollowNodes(api.connection, _RENEWAL)
        self._creator = Creator(api, self._hollow, self._namespace)
        self._informers = InformerFactory(api.connection, self._namespace)
        self._lock = threading.Lock()
        self._free: dict[str, list[tuple[str, list[Obj]]]] = defaultdict(list)
        self._numbers = count()
        self._kinds: dict[str, str] = {}  # kind -> apiVersion, of all that was made
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="fuzz")

    @contextmanager
    def open_namespace(self) -> Iterator[Runner]:
        """Create a namespace to run in, and remove all that was made at the end.

        Raises ApiError or TargetError: it could not be made, or what is left not be removed.
        """
        try:
            labels = {RUN_LABEL: self._run, **ADMIN_LABEL}
            metadata = {"name": self._namespace, "labels": labels}
            self._create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            for api_version, kind in _FOLLOWED:
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
        """Return what the cluster does with each of some problems, put there at the same time.

        Args:
            settle: seconds for which a pod that the reference could place may wait.
            decide: seconds within which the scheduler says something of a pod.

        Raises ApiError: a request was refused for another reason than its object; TargetError.
        """
        batch = f"b{next(self._numbers)}"
        cases = [self._open_case(problem, batch) for problem in problems]
        try:
            list(self._pool.map(self._publish, cases))
            self._await_answers(cases, settle, decide)
        finally:
            self._remove(f"{RUN_LABEL}={self._run},{BATCH}={batch}")
            with self._lock:
                for case in cases:
                    self._free[case.key].append((case.scope.team, case.nodes))
        return [case.answer for case in cases if case.answer is not None]

    def stop(self) -> None:
        """Stop waiting for answers: what is not known by then is not judged."""
        self._stopping.set()

    # -- making ---------------------------------------------------------------------------------

    def _open_case(self, problem: Problem, batch: str) -> Case:
        key = nodes_key(problem.document)
        number = next(self._numbers)
        with self._lock:
            team, nodes = (
                self._free[key].pop() if self._free[key] else (f"fuzz-{self._run}-{number}", [])
            )
        labels = {RUN_LABEL: self._run, BATCH: batch}
        scope = ProblemScope(f"x{number}x{self._run}", team, self._namespace, labels)
        if not nodes:
            hollow_nodes = nodes_of(problem.document, team, self._run)
            nodes = [reduce_object(self._create(node)) for node in hollow_nodes]
        return Case(problem, scope, key, self._kubernetes, self._gates, created=list(nodes))

    def _publish(self, case: Case) -> None:
        """Create all objects of a problem but its pods."""
        try:
            for obj in case.scope.list_objects(case.problem.document):
                if obj["kind"] == "Pod":
                    case.pods.append(obj)
                    continue
                created = self._create(obj)
                if "status" in obj:
                    created = self._write_status(created, obj["status"])
                case.created.append(reduce_object(created))
        except ApiError as error:
            self._note_refusal(case, obj, error)

    def _create_next_pod(self, case: Case) -> None:
        """Create a problem's next pod, and first delete the one before if that waits."""
        if case.earlier and not case.earlier[-1]:
            last = case.pods[len(case.earlier) - 1]["metadata"]["name"]
            path = self._api.discovery.find("v1", "Pod").path(self._namespace, last)
            self._api.connection.request("DELETE", path, None, {"gracePeriodSeconds": 0})
        pod = case.pod
        if self._scheduler:
            pod = {**pod, "spec": {**pod["spec"], "schedulerName": self._scheduler}}
        try:
            self._create(pod)
        except ApiError as error:
            self._note_refusal(case, case.pod, error)
        case.since = time.monotonic()

    def _note_refusal(self, case: Case, obj: Obj, error: ApiError) -> None:
        if error.code not in (400, 403, 422):
            raise error
        message = case.scope.restore_names({"text": f"{obj['kind']}: {error.message}"})["text"]
        case.answer = Answer(case.problem, "refused", message)

    def _create(self, obj: Obj) -> Obj:
        self._kinds[obj["kind"]] = obj["apiVersion"]
        resource = self._api.discovery.find(obj["apiVersion"], obj["kind"])
        return self._creator.create(resource, obj["metadata"].get("namespace"), obj)

    def _write_status(self, claim: Obj, status: Obj) -> Obj:
        resource = self._api.discovery.find(DRA, "ResourceClaim")
        path = resource.path(self._namespace, claim["metadata"]["name"], "status")
        updated: Obj = self._api.connection.request("PUT", path, None, {**claim, "status": status})
        return updated

    # -- waiting --------------------------------------------------------------------------------

    def _await_answers(self, cases: Sequence[Case], settle: float, decide: float) -> None:
        """Wait until every case has its answer."""
        changes = Changes()
        for api_version, kind in _FOLLOWED:
            changes.attach(self._informer(api_version, kind))
        try:
            while open_cases := [case for case in cases if case.answer is None]:
                changes_seen = changes.count
                list(
                    self._pool.map(
                        self._create_next_pod, [case for case in open_cases if not case.since]
                    )
                )
                for case in open_cases:
                    if case.answer is None:  # it may just have been refused
                        self._judge_pod(case, settle, decide)
                if self._stopping.is_set():
                    return
                if all(case.answer is None and case.since for case in open_cases):
                    changes.wait(changes_seen, time.monotonic() + LONGEST)
        finally:
            changes.detach()

    def _judge_pod(self, case: Case, settle: float, decide: float) -> None:
        pods = self._informer("v1", "Pod").store
        claims = self._informer(DRA, "ResourceClaim").store
        pod = pods.get(self._namespace, case.pod["metadata"]["name"]) or {}
        now = [claims.get(self._namespace, name) or {} for name in claim_names(pod)]
        case.judge_latest_pod(pod, now, settle, decide)

    # -- removing -------------------------------------------------------------------------------

    def _remove(self, selector: str) -> None:
        """Delete all objects but nodes; the claims that are in use go when their pods have.

        Pods that wait would be tried again for every object that goes. The other kinds go at once,
        because the API server deletes the objects of one request one after the other.
        """
        if "Pod" in self._kinds:
            self._delete_all("Pod", selector)
        other_kinds = self._kinds.keys() - {"Pod", "Node", "Namespace"}
        with ThreadPoolExecutor(len(other_kinds) or 1) as pool:
            list(pool.map(lambda kind: self._delete_all(kind, selector), other_kinds))

    def _delete_all(self, kind: str, selector: str) -> None:
        path = self._api.discovery.find(self._kinds[kind], kind).path(self._namespace)
        query = {"labelSelector": selector}
        body = {"gracePeriodSeconds": 0} if kind == "Pod" else None
        # Cut off, it goes on where it was.
        self._api.connection.request("DELETE", path, query, body, patience=_GONE)

    def _clean(self) -> None:
        """Remove all that was made, and wait until it is gone."""
        selector = f"{RUN_LABEL}={self._run}"
        self._remove(selector)
        if "Node" in self._kinds:
            self._delete_all("Node", selector)
        namespaces = self._api.discovery.find("v1", "Namespace")
        if self._api.read(namespaces, None, self._namespace) is not None:
            self._api.connection.request("DELETE", namespaces.path(None, self._namespace))
        end = time.monotonic() + _GONE
        while remaining := list_owned(self._api, self._run):
            if time.monotonic() > end:
                raise TargetError(
                    f"{len(remaining)} objects were not removed, such as {remaining[0]};"
                    f" `dra-conformance cleanup --run {self._run}` removes them"
                )
            time.sleep(0.5)

    def _informer(self, api_version: str, kind: str) -> Informer:
        return self._informers.informer(
            self._api.discovery.find(api_version, kind), self._namespace
        )
