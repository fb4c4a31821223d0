"""One attempt at a scenario: what its steps, its expectations and the phases of its end share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from conformance.engine.objects.ledger import Ledger, default_version
from conformance.engine.run.account import AccountKeeper
from conformance.engine.run.changes import send
from conformance.engine.run.ending import Ending, Interrupted
from conformance.engine.schedule.loop import Slot
from conformance.engine.schedule.pools import NodePool
from conformance.engine.setup import Setup
from conformance.results.events.dispatch import Event
from conformance.results.events.scenario import Outcome, StepFinished
from conformance.scenario.base import ObjectSelector, PodSelector, ServerSelector
from conformance.scenario.changes import KUBELET, AccountName, Changes, Delete, service_account
from conformance.scenario.driver.profile import DriverProfile
from conformance.scenario.driver.variables import Variables
from conformance.scenario.expectations.base import Refusal, WatchEvent
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.metrics import MetricOf
from conformance.scenario.model import Scenario
from conformance.seam.observation import Observation
from conformance.seam.scope import Scope, T
from conformance.seam.values import CONSTRAINTS
from conformance.seam.watching import Watching
from kube.base.errors import UsageError
from kube.errors import ApiError
from kube.observations import sum_samples
from kube.store import version_of
from kube.values import Obj, Query, Ref, User
from reference_allocator.api.schema import CLUSTER_SCOPED

Emit = Callable[[Event], None]


class DevicePlace(NamedTuple):
    """A device of a node: its name is unique in its pool."""

    node: str
    pool: str
    device: str


@dataclass(slots=True)
class ScenarioAttempt:
    """A scenario of a run as it is tried once: where it runs, and what has happened in it so far.

    Its steps, its expectations and the phases of its end share it; it implements what expectations
    ask (``Cluster``).

    Attributes:
        setup: what is given for the whole run.
        loaded: the scenario as its file has it.
        scenario: the same with its variables replaced.
        scope: the scenario's view of the target; who opens the attempt closes it.
        profile: of the driver that expectations are about.
        pool: the nodes on which the scenario runs; None is all of the target.
        number: how many attempts there were before this one.
        emit: takes what is to be reported.
        ending: how it has gone.
        steps: those that were carried out.
        decisions: of the scheduler, where they are kept for a comparison.
        leftovers: what the cleanup did not remove, in words.
        noted_overlaps: those that are in the ending: driver, pool, device and version of each.
        captured: name -> an object as a step `capture` found it.
        inserted: text that was put into steps -> the variable of a captured value that it was.
        watches: name -> what a step `watch` selects, and its events.
        began_at: name of a step -> `Scope.now` before its first request.
        metrics_before: step and metric -> node and value before the step.
        stopped_components: those that a step `fault` has stopped or restarted.
        gated: those of them that run with feature gates turned off -> these gates.
        published: nodes for which the driver had published before the first step ``fault``.
        other_driver_runs: another driver was started for the scenario.
        unhealthy: devices that a step `stimulate` has changed, as they were before.
        undecided: snapshots of pods that were seen to be pending for want of devices.
        diagnostics: name -> text, beside what is asked of the target.
        claim_uids: pod and name in its resourceClaims -> uid of the claim.
        keeper: keeps what components say of it; None where that is not kept.
    """

    setup: Setup
    loaded: LoadedScenario
    scenario: Scenario
    variables: Variables
    scope: Scope
    ledger: Ledger
    profile: DriverProfile | None
    pool: NodePool | None = None
    number: int = 0
    slot: Slot = field(default_factory=Slot)
    emit: Emit = lambda _event: None
    ending: Ending = field(default_factory=Ending)
    steps: list[StepFinished] = field(default_factory=list)
    decisions: list[dict[str, Any]] = field(default_factory=list)
    leftovers: tuple[str, ...] = ()
    cleanup: Outcome = Outcome.SKIPPED
    noted_overlaps: set[tuple[str, str, str, int]] = field(default_factory=set)
    captured: dict[str, Obj] = field(default_factory=dict)
    inserted: dict[str, str] = field(default_factory=dict)
    watches: dict[str, tuple[ServerSelector, Watching]] = field(default_factory=dict)
    began_at: dict[str, float] = field(default_factory=dict)
    metrics_before: dict[tuple[str, str], tuple[str | None, float]] = field(default_factory=dict)
    stopped_components: list[str] = field(default_factory=list)
    gated: dict[str, Mapping[str, bool]] = field(default_factory=dict)
    published: frozenset[str] | None = None
    other_driver_runs: bool = False
    unhealthy: dict[DevicePlace, Obj] = field(default_factory=dict)
    undecided: list[dict[str, Any]] = field(default_factory=list)
    diagnostics: dict[str, str] = field(default_factory=dict)
    claim_uids: dict[tuple[str, str], str] = field(default_factory=dict)
    keeper: AccountKeeper | None = None

    @classmethod
    def open(
        cls,
        setup: Setup,
        loaded: LoadedScenario,
        pool: NodePool | None,
        number: int,
        slot: Slot,
        emit: Emit,
    ) -> ScenarioAttempt:
        """Open a scope for a scenario, whose variables are replaced; nothing is made in it.

        Raises UsageError: a variable does not resolve.
        """
        variables = setup.make_variables(loaded, pool, number)
        scenario, opened = loaded.bind(variables), setup.opened
        scope = opened.target.scope(setup.name_namespace(loaded, number))
        ledger = Ledger(
            scope,
            setup.make_labels(loaded),
            ranges=CONSTRAINTS in opened.capabilities.served_apis,
            nodes=pool.nodes if pool and scenario.spec.tier != "allocation" else (),
            scheduler=opened.scheduler.name if opened.scheduler else "",
        )
        return cls(
            setup,
            loaded,
            scenario,
            variables,
            scope,
            ledger,
            opened.profile,
            pool,
            number,
            slot,
            emit,
            Ending(loaded.locate(())),
        )

    @property
    def node(self) -> str | None:
        """The only one whose components the scenario disrupts; None: its faults name one."""
        return self.pool.nodes[0] if self.pool and self.pool.reserved else None

    @property
    def record(self) -> bool:
        """Whether decisions and snapshots are kept for a comparison."""
        # While churn goes on, too much changes to know what the scheduler saw when it decided.
        churns = any(step.churn for step in self.scenario.spec.steps)
        return self.setup.opened.options.record and not churns

    @property
    def stop(self) -> threading.Event:
        return self.setup.stop

    @property
    def observe(self) -> Observation:
        return self.scope.observe

    def limit(self, seconds: float) -> float:
        """A time limit of the scenario as it is in this run."""
        return seconds * self.setup.time_factor

    def check(self) -> None:
        """Raise Interrupted if the run must end."""
        if self.stop.is_set():
            raise Interrupted

    def wait(self, check: Callable[[], T | None], timeout: float) -> T | None:
        """``Scope.wait``; raises Interrupted if the run must end."""

        def stoppable() -> T | None:
            self.check()
            return check()

        return self.scope.wait(stoppable, timeout)

    def get(
        self, kind: str, name: str, api_version: str | None = None, namespace: str | None = None
    ) -> Obj | None:
        """An object of a namespace (by default the scenario's), or a cluster-scoped one."""
        return self.scope.get(self._ref(kind, name, api_version, namespace))

    def _ref(self, kind: str, name: str, api_version: str | None, namespace: str | None) -> Ref:
        own_namespace = None if kind in CLUSTER_SCOPED else namespace or self.scope.namespace
        return Ref(api_version or default_version(kind), kind, name, own_namespace)

    def user(self, account: AccountName | None) -> User | None:
        """The user of requests that say ``as``."""
        if account is None:
            return None
        node = self.scenario.spec.accounts[account].node
        if account == KUBELET:
            return User.kubelet_of(node or "")
        return User(self.scope.namespace, service_account(account), node or "")

    def find(self, selector: ObjectSelector) -> list[Obj]:
        """All objects that a selector matches, sorted by name."""
        if selector.name is not None:
            version = selector.api_version
            obj = self.get(selector.kind, selector.name, version, selector.namespace)
            objects = [obj] if obj is not None else []
        else:
            objects = self.scope.find(_query(selector))
        return sorted(
            (obj for obj in objects if selector.selects(obj)),
            key=lambda obj: str(obj["metadata"]["name"]),
        )

    def read_columns(self, selector: ObjectSelector, name: str) -> Mapping[str, str]:
        version, namespace = selector.api_version, selector.namespace
        return self.scope.columns(self._ref(selector.kind, name, version, namespace))

    def watch(self, name: str, selector: ServerSelector) -> None:
        """Watch from now on, for :meth:`list_watch_events`."""
        self.watches[name] = selector, self.scope.watch(_query(selector))

    def list_watch_events(self, name: str) -> Sequence[WatchEvent]:
        # What is in a namespace of the scenario is its own; others need its labels.
        selector, watching = self.watches[name]
        own_labels = self.ledger.labels if selector.kind in CLUSTER_SCOPED else {}
        return [
            WatchEvent(change, str(obj["metadata"]["name"]), version_of(obj))
            for change, obj in watching.events()
            if own_labels.items() <= (obj["metadata"].get("labels") or {}).items()
        ]

    def find_pods(self, selector: PodSelector) -> list[Obj]:
        # Without failed ones: a Job replaces a pod that fails, for example one that was evicted.
        labels = selector.labels or {"batch.kubernetes.io/job-name": str(selector.job)}
        return sorted(
            (
                pod
                for pod in self.scope.find(Query("v1", "Pod", labels))
                if pod.get("status", {}).get("phase") != "Failed"
            ),
            key=lambda pod: str(pod["metadata"]["name"]),
        )

    def claim_of(self, pod: str, pod_claim: str) -> Obj | None:
        """The ResourceClaim of an entry of ``pod.spec.resourceClaims``; remembers its uid."""
        pod_object = self.get("Pod", pod)
        if pod_object is None:
            return None
        name = None
        for entry in pod_object["spec"].get("resourceClaims", ()):
            if entry["name"] == pod_claim:
                name = entry.get("resourceClaimName")
        for status in pod_object.get("status", {}).get("resourceClaimStatuses", ()):
            if status["name"] == pod_claim:
                name = status.get("resourceClaimName", name)
        claim = self.get("ResourceClaim", name) if name else None
        if claim is not None:
            self.claim_uids[pod, pod_claim] = claim["metadata"]["uid"]
        return claim

    def claim_uid(self, pod: str, pod_claim: str) -> str | None:
        if self.claim_of(pod, pod_claim) is None:
            self._remember_named(pod, pod_claim)
        return self.claim_uids.get((pod, pod_claim))

    def _remember_named(self, pod: str, pod_claim: str) -> None:
        """Claims that the manifest of a deleted pod names may still exist."""
        manifests = (one for step in self.scenario.spec.steps for one in step.apply or ())
        for manifest in manifests:
            if manifest.get("kind") != "Pod" or manifest["metadata"]["name"] != pod:
                continue
            for entry in manifest["spec"].get("resourceClaims", ()):
                name = entry.get("resourceClaimName") if entry["name"] == pod_claim else None
                claim = self.get("ResourceClaim", name) if name else None
                if claim is not None:
                    self.claim_uids.setdefault((pod, pod_claim), claim["metadata"]["uid"])

    def read_metric(self, wanted: MetricOf) -> float | None:
        if wanted.grown_since is None:
            node = wanted.node if wanted.node_of is None else self.node_of(wanted.node_of)
            return None if wanted.node_of and node is None else self.read(wanted, node)
        node, value_before = self.metrics_before[wanted.grown_since, wanted.describe()]
        value = self.read(wanted, node)
        return None if value is None else value - value_before

    def read(self, wanted: MetricOf, node: str | None) -> float | None:
        """The present value of a metric on a node, whatever its ``nodeOf`` says."""
        samples = self.observe.samples(wanted.component, wanted.name, node)
        return None if samples is None else sum_samples(samples, wanted.labels)

    def node_of(self, pod: str) -> str | None:
        """The node of a pod, None if it is on none."""
        pod_object = self.get("Pod", pod) or {"spec": {}}
        node: str | None = pod_object["spec"].get("nodeName")
        return node

    def of_driver(self, driver: str) -> ScenarioAttempt:
        """Return the attempt with another driver's profile; what has happened is in both alike."""
        if self.profile is not None and self.profile.driver == driver:
            return self
        other = self.setup.opened.other
        if other is None or other.driver != driver:
            raise UsageError(f"the run has no driver profile of {driver}")
        return replace(self, profile=other)

    def try_create(self, obj: Obj, account: AccountName | None = None) -> Refusal | None:
        return _refusal(lambda: self.ledger.create(obj, self.user(account)))

    def try_change(self, changes: Changes, deleted: tuple[Delete, ...]) -> Refusal | None:
        return _refusal(lambda: send(changes, deleted, self))

    def may(
        self, account: AccountName, verb: str, kind: str, name: str, fields: Mapping[str, str]
    ) -> bool:
        user = self.user(account)
        assert user is not None
        own_namespace = None if kind in CLUSTER_SCOPED else self.scope.namespace
        query = Query(default_version(kind), kind, None, own_namespace, fields)
        return self.scope.may(user, verb, query, name)

    def make_canonical(self, text: str) -> str:
        for inserted, variable in self.inserted.items():
            text = text.replace(inserted, variable)
        return self.variables.make_canonical(text)


def _query(selector: ServerSelector) -> Query:
    version = selector.api_version or default_version(selector.kind)
    return Query(version, selector.kind, selector.labels, selector.namespace, selector.fields)


def _refusal(request: Callable[[], object]) -> Refusal | None:
    try:
        request()
    except ApiError as error:
        causes = tuple((cause.field, cause.message) for cause in error.causes)
        return Refusal(error.code, error.reason, error.message, causes)
    return None
