"""A target small enough to be obviously right: it stores objects and lets virtual time pass.

Pods are scheduled at once unless they are named ``pending``; deleting works unless a finalizer is
set. What a test wants otherwise it puts into ``on_create``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from conformance.engine.objects.ledger import Ledger
from conformance.engine.run.attempt import ScenarioAttempt
from conformance.engine.setup import Setup
from conformance.results.events.dispatch import Event
from conformance.scenario.documents.yamlfile import Document
from conformance.scenario.driver.variables import Variables
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.model import Scenario
from conformance.seam.overlaps import Overlap
from conformance.seam.scope import Scope, T, Target
from conformance.seam.values import Capabilities, FreeDevices
from conformance.seam.watching import Following, Watching
from conformance.targets.opening.target import Opened
from kube.errors import ApiError
from kube.nodes import RUN_LABEL
from kube.observations import Component, Decision, Health, PublishedDevice, Sample
from kube.values import Obj, Query, Ref, Request, User
from kubesim.apiserver.patches import merge


class Miniature:
    """The target; ``objects`` is everything there is."""

    name = "miniature"

    def __init__(self, devices: int = 4) -> None:
        self.objects: dict[Ref, Obj] = {}
        self.log: list[str] = []
        self.time = 0.0
        self.devices = devices
        self.on_create: Callable[[Obj], None] = lambda obj: None
        self.on_delete: Callable[[Ref, Obj], None] = lambda ref, obj: None
        self.on_fault: Callable[[str], None] = lambda action: None
        self.closed = 0
        self.at_once: list[int] = []
        self.overlaps: list[Overlap] = []
        self.changes = 0
        self.samples: list[Sample] | None = None
        self.served = {"v1", "resource.k8s.io/v1"}
        self.memory: int | None = None

    def capabilities(self) -> Capabilities:
        return Capabilities(
            kubernetes_version="1.37.1",
            served_apis=frozenset(self.served),
            tiers=frozenset({"allocation", "node"}),
            free=FreeDevices(self.devices),
            feature_gates={"DRAOff": False},
        )

    def scope(self, namespace: str) -> MiniScope:
        return MiniScope(self, namespace)

    def owned(self, run: str | None = None, *, every_kind: bool = False) -> list[Ref]:
        return [
            ref
            for ref, obj in self.objects.items()
            if obj["metadata"].get("labels", {}).get(RUN_LABEL) in ({run} if run else {None, run})
        ]

    def now(self) -> float:
        return self.time

    def peak_memory(self) -> int | None:
        return self.memory

    def close(self) -> None:
        self.closed += 1


class MiniSurroundings:
    """Nothing is observed of them but metrics; what is done to them is noted."""

    def __init__(self, target: Miniature) -> None:
        self.target = target

    def container(self, pod: str, container: str) -> None:
        return None

    def cdi_claims(self) -> Mapping[str, Sequence[str]]:
        return {}

    def cdi_specs(self) -> Sequence[tuple[str, Obj]]:
        return []

    def samples(self, component: Component, name: str, node: str | None) -> Sequence[Sample] | None:
        return self.target.samples

    def pod_resources(self, pod: str, container: str) -> None:
        return None

    def driver_calls(self) -> None:
        return None

    def claims_in_use(self, node: str, driver: str) -> int:
        return 0

    def published_before(self, driver: str) -> Sequence[PublishedDevice]:
        return ()

    def disturb(self, component: str, action: str) -> None:
        self.target.on_fault(action)
        self.target.log.append(f"{action} {component}")

    def set_gates(self, component: str, gates: Mapping[str, bool]) -> None:
        self.target.log.append(f"gates {component} {dict(gates)}")

    def set_health(self, node: str, device: Obj, health: Health) -> None:
        self.target.log.append(f"{node}/{device['name']} {health}")


class MiniScope(Scope):
    """A scope of the miniature."""

    def __init__(self, target: Miniature, namespace: str) -> None:
        self.target = target
        self.namespace = namespace
        self.observe = self.faults = MiniSurroundings(target)

    def grant(self, user: User, rules: Sequence[Obj], labels: Mapping[str, str]) -> None:
        raise NotImplementedError

    def may(self, user: User, verb: str, query: Query, name: str = "") -> bool:
        raise NotImplementedError

    def create(self, obj: Obj, user: User | None = None) -> Obj:
        obj = copy.deepcopy(obj)
        self.target.on_create(obj)
        ref = Ref.of(obj)
        if ref in self.target.objects:
            raise ApiError(409, "AlreadyExists", f"{ref} exists")
        if obj["kind"] == "Pod" and obj["metadata"]["name"] != "pending":
            obj["spec"]["nodeName"] = "node"
        self.target.changes += 1
        obj["metadata"] |= {
            "uid": f"u{self.target.changes}",
            "resourceVersion": str(self.target.changes),
        }
        self.target.objects[ref] = obj
        self.target.log.append(f"create {ref}")
        return obj

    def get(self, ref: Ref) -> Obj | None:
        return self.target.objects.get(ref)

    def columns(self, ref: Ref) -> Mapping[str, str]:
        return {}

    def find(self, query: Query) -> list[Obj]:
        return [
            obj
            for ref, obj in self.target.objects.items()
            if ref.kind == query.kind and ref.namespace in {None, self.namespace}
        ]

    def watch(self, query: Query) -> Watching:
        return Watching()

    def send(self, request: Request) -> None:
        ref, objects = request.ref, self.target.objects
        obj = objects.get(ref)
        if request.verb == "delete":
            self.target.log.append(f"delete {ref}")
            if obj is not None:
                self.target.on_delete(ref, obj)
            if obj is not None and not obj["metadata"].get("finalizers"):
                del objects[ref]
        elif request.verb == "patch":
            if obj is None:
                raise ApiError(404, "NotFound", f"{ref} not found")
            now = obj["metadata"]["resourceVersion"]
            if request.body["metadata"].get("resourceVersion") not in {None, now}:
                raise ApiError(409, "Conflict", f"{ref} has been modified")
            self.target.changes += 1
            objects[ref] = merge(obj, request.body)
            objects[ref]["metadata"]["resourceVersion"] = str(self.target.changes)

    def at_once(self, actions: Sequence[Callable[[], None]]) -> None:
        self.target.at_once.append(len(actions))
        for action in actions:
            action()

    def wait(self, check: Callable[[], T | None], timeout: float) -> T | None:
        end = self.target.time + timeout
        while True:
            found = check()
            if found is not None or self.target.time >= end:
                return found
            self.target.time = min(self.target.time + 1.0, end)

    def now(self) -> float:
        return self.target.time

    def pause(self, seconds: float) -> None:
        self.target.time += seconds

    def decisions(self) -> Sequence[Decision]:
        return []

    def latencies(self) -> Sequence[float]:
        return ()

    def overlaps(self) -> Sequence[Overlap]:
        return self.target.overlaps

    def follow(self, namespaces: Sequence[str]) -> Following:
        return Following(namespaces)

    def snapshot(self, pods: bool = False) -> Obj:
        return {}

    def diagnostics(self) -> Mapping[str, str]:
        return {"objects.txt": "\n".join(map(str, self.target.objects))}

    def close(self) -> None:
        self.target.log.append("close")


def document(*steps: dict[str, Any], name: str = "given", **spec: Any) -> dict[str, Any]:
    """A scenario document from its steps."""
    return {
        "apiVersion": "dra-conformance/v1",
        "kind": "Scenario",
        "metadata": {"name": name},
        "spec": {
            "summary": "What the test is about.",
            "level": "core",
            "feature": "ResourceClaim",
            "tier": "allocation",
            "references": ["https://kep.k8s.io/4381"],
            "steps": list(steps),
            **spec,
        },
    }


def scenario(*steps: dict[str, Any], name: str = "given", **spec: Any) -> LoadedScenario:
    """A scenario from its steps."""
    data = document(*steps, name=name, **spec)
    read = Document(Path(f"{name}.yaml"), data, {(): 1})
    return LoadedScenario(f"core/{name}", Scenario.model_validate(data), read, "sha256:0")


def write(folder: Path, steps: str, **spec: Any) -> Path:
    """The file of a scenario, whose steps may be in the short form."""
    file = folder / "given.yaml"
    data = document(*yaml.safe_load(steps), **{"tier": "node", "level": "extended"} | spec)
    file.write_text(yaml.safe_dump(data), encoding="utf-8")
    return file


def node(name: str, devices: int = 1, *, exclusive: bool = False) -> LoadedScenario:
    """A scenario of the node tier with a pod that gets scheduled."""
    return scenario(
        {"apply": [pod("p")]},
        {"expect": [{"pod": "p", "scheduled": True}]},
        name=name,
        tier="node",
        requires={"devices": devices, "exclusive": exclusive},
    )


def pod(name: str, **metadata: Any) -> Obj:
    """A pod manifest."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": []},
    }


def setup(target: Target) -> Setup:
    """A run on a target without a driver."""
    return Setup("run0", Opened(target, target.capabilities(), None, "image"))


def attempt_in(scope: Scope, loaded: LoadedScenario, target: Target) -> ScenarioAttempt:
    """An attempt at a scenario whose namespace is there."""
    variables, ledger = Variables(None, "0badcafe", "image"), Ledger(scope, {})
    return ScenarioAttempt(
        setup(target), loaded, loaded.scenario, variables, scope, ledger, profile=None
    )


def refusing(error: Exception, kind: str = "Pod") -> Miniature:
    """A target on which no object of a kind can be created."""
    target = Miniature()

    def on_create(obj: Obj) -> None:
        if obj["kind"] == kind:
            raise error

    target.on_create = on_create
    return target


class Recorder:
    """A reporter that keeps every event."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def handle(self, event: Event) -> None:
        self.events.append(event)
