"""A random problem for a scheduler: what is on a cluster when pods come and want devices.

It is about two or three features, because defects sit where features meet, and its objects are such
that an API server takes them: what the reference's own refuses is drawn again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from conformance.fuzz.draw.dice import FOCUS, GATED, Dice
from conformance.fuzz.draw.pods import draw_pods, draw_taint_rules, provide_resources
from conformance.fuzz.draw.problems import draw_problem
from conformance.targets.reference.device_source import NoDriver
from conformance.targets.reference.target import ReferenceOptions, ReferenceTarget
from kube.errors import ApiError
from kube.values import Obj
from reference_allocator.extended import IMPLICIT_PREFIX
from reference_allocator.features import Features, gates_of
from reference_allocator.gates import gates_for_version, scheduler_gates
from reference_allocator.rules.taints import apply_taint_rules
from reference_allocator.snapshot import Snapshot

DOMAIN = "example.com"
ANY = f"any.{DOMAIN}"
"""A class for the devices of all drivers of a problem, and of no other."""
ADMIN_LABEL = {"resource.kubernetes.io/admin-access": "true"}
NAMESPACE = "default"
LISTS = ("deviceClasses", "taintRules", "slices", "allocated", "claims", "pods")
"""What a problem has beside nodes, in the order in which it is created."""
_DRA = "resource.k8s.io/v1"
_GATES = {
    "deviceTaintRules": ("DRADeviceTaintRules", "DRADeviceTaints"),
    "extendedResource": ("DRAExtendedResource",),
}
"""Gates of what is no feature of the allocator alone."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem and where it came from.

    Attributes:
        id: ``SEED-NUMBER``, from which it can be drawn again for the same version and gates.
        focus: what it is about.
        document: a snapshot's fields, and the DeviceTaintRules, which its slices do not show;
            the pods come one after the other, and one that waits is gone before the next comes.
    """

    id: str
    focus: tuple[str, ...]
    document: Obj


class Generator:
    """Draws problems for one version of Kubernetes.

    Args:
        kubernetes: the API server's version.
        gates: its feature gates that are known to be on or off.
        scheduler: the scheduler's version, by which problems are judged; empty: the same.
    """

    def __init__(self, kubernetes: str, gates: Mapping[str, bool], scheduler: str = "") -> None:
        version_gates = gates_for_version(kubernetes)
        settable_gates = {
            name: on
            for name, on in gates.items()
            if name in version_gates and not version_gates[name].locked
        }
        served = Features.for_version(kubernetes, gates)
        self.kubernetes, self.features = kubernetes, served
        if scheduler and scheduler != kubernetes:
            its_gates = scheduler_gates(kubernetes, gates, scheduler)
            self.kubernetes, self.features = scheduler, Features.for_version(scheduler, its_gates)
        options = ReferenceOptions(
            kubernetes_version=kubernetes,
            feature_gates=settable_gates,
            nodes=(),
            devices=NoDriver("none"),
        )
        self._reference = ReferenceTarget(options)
        self._lock = threading.Lock()
        metadata = {"name": NAMESPACE, "labels": ADMIN_LABEL}
        self._reference.world.api.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, ""
        )
        on = {name for name, is_on in served.to_dict().items() if is_on}
        is_on = {name: gate.default for name, gate in version_gates.items()} | dict(gates)
        on |= {name for name, needed in _GATES.items() if all(map(is_on.get, needed))}
        self._on = frozenset(on)
        self._focus = [name for name in FOCUS if name in on or name not in GATED]

    def draw(self, seed: str, number: int) -> Problem:
        """Draw a problem; the same arguments give the same one."""
        random = Random(f"{seed}-{number}")  # noqa: S311 -- what it draws are no secrets
        while True:
            focus = tuple(sorted(random.sample(self._focus, random.choice((2, 2, 3)))))
            small = random.randrange(3) > 0
            dice = Dice(random, calm=True, small=small, features=self._on, focus=frozenset(focus))
            document = self._document(draw_problem(dice, f"{seed}-{number}"), dice)
            if not self.explain_refusal(document):
                return Problem(f"{seed}-{number}", focus, document)

    def explain_refusal(self, document: Obj) -> str:
        """Return why the reference's API server refuses an object; empty if it refuses none."""
        world = self._reference.world
        with self._lock, world.cluster.store.dry_run():
            for obj in objects_of(document):
                try:
                    world.api.create(obj, NAMESPACE)
                except ApiError as error:
                    return f"{obj['kind']} {obj['metadata']['name']}: {error.message}"
        return ""

    def _document(self, line: Obj, dice: Dice) -> Obj:
        """Return a line for `allocate` as a snapshot, with pods and the classes that they use."""
        drivers = sorted({item["spec"]["driver"] for item in line["slices"]})
        resources = provide_resources(dice, line["deviceClasses"], drivers)
        arriving_pods = draw_pods(
            dice, [claim["metadata"]["name"] for claim in line["claims"]], resources
        )
        claim_names = {name for pod in arriving_pods for name in claims_of(pod)}
        allocated = [_allocated_claim(claim) for claim in line["allocated"] if claim["status"]]
        claims = [
            _with_any_class(_with_type("ResourceClaim", claim))
            for claim in line["claims"]
            if claim["metadata"]["name"] in claim_names
        ]
        classes = [
            *(item for item in line["deviceClasses"] if item["metadata"]["name"] != "any"),
            {"metadata": {"name": ANY}, "spec": {"selectors": [_any_selector()]}},
        ]
        used_classes = {
            body["deviceClassName"]
            for claim in (*claims, *allocated)
            for body in request_bodies(claim)
        }
        requested_resources = {name for pod in arriving_pods for name in resources_of(pod)}
        snapshot = Snapshot(
            kubernetes=self.kubernetes,
            features=self.features,
            slices=tuple(_with_type("ResourceSlice", item) for item in line["slices"]),
            device_classes=tuple(
                _with_type("DeviceClass", item)
                for item in classes
                if item["metadata"]["name"] in used_classes
                or not requested_resources.isdisjoint(_provided_resources(item))
            ),
            nodes=tuple({"apiVersion": "v1", "kind": "Node", **node} for node in line["nodes"]),
            claims=tuple(claims),
            allocated=tuple(allocated),
            pods=tuple(pod_of(pod["metadata"]["name"], pod["spec"]) for pod in arriving_pods),
        )
        rules = [
            _with_type("DeviceTaintRule", item) for item in draw_taint_rules(dice, line["slices"])
        ]
        return {**snapshot.to_dict(), "taintRules": rules}


def snapshot_of(document: Obj) -> Obj:
    """Return the snapshot before the first pod comes: slices have the taints of the rules."""
    snapshot = {name: value for name, value in document.items() if name != "taintRules"}
    snapshot["slices"] = apply_taint_rules(document["slices"], document["taintRules"])
    return snapshot


def gates_for(feature: str) -> tuple[str, ...]:
    """Return the feature gates that a problem's focus needs."""
    return _GATES.get(feature) or gates_of(feature)


def objects_of(document: Obj) -> Iterator[Obj]:
    """Yield what is created for a problem, but for its nodes: in that order, the pods last."""
    for field in LISTS:
        for obj in document.get(field, ()):
            yield {key: value for key, value in obj.items() if key != "status"}


def request_bodies(claim: Obj) -> Iterator[Obj]:
    """Yield what a claim's requests ask for: ``exactly``, or each alternative."""
    for request in claim["spec"]["devices"]["requests"]:
        if "exactly" in request:
            yield request["exactly"]
        yield from request.get("firstAvailable", ())


def pod_of(name: str, spec: Obj) -> Obj:
    """Return a pod that is kept from no node. ``spec``: its claims and containers."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "containers": [{"name": "ctr0", "image": "none"}],
            **spec,
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"operator": "Exists"}],
        },
    }


def claims_of(pod: Obj) -> list[str]:
    """Return the names of the claims that a pod names."""
    return [item["resourceClaimName"] for item in pod["spec"].get("resourceClaims", ())]


def resources_of(pod: Obj) -> set[str]:
    """Return the resources that a pod's containers ask for."""
    spec = pod["spec"]
    return {
        name
        for container in (*spec.get("initContainers", ()), *spec.get("containers", ()))
        for name in container.get("resources", {}).get("limits", ())
    }


def _provided_resources(device_class: Obj) -> tuple[str, ...]:
    """Return the extended resources that a class provides."""
    explicit = device_class["spec"].get("extendedResourceName", "")
    return (explicit, f"{IMPLICIT_PREFIX}{device_class['metadata']['name']}")


def _with_type(kind: str, obj: Obj) -> Obj:
    return {"apiVersion": _DRA, "kind": kind, **obj}


def _any_selector() -> Obj:
    return {"cel": {"expression": f'device.driver.endsWith(".{DOMAIN}")'}}


def _with_any_class(claim: Obj) -> Obj:
    for body in request_bodies(claim):
        if body["deviceClassName"] == "any":
            body["deviceClassName"] = ANY
    return claim


def _allocated_claim(claim: Obj) -> Obj:
    """Return a claim with its devices, and a spec that could have got them."""
    results = claim["status"]["allocation"]["devices"]["results"]
    admin = any(item.get("adminAccess") for item in results)
    body: Obj = {"deviceClassName": ANY, "allocationMode": "ExactCount", "count": len(results)}
    for item in results if admin else ():
        item["adminAccess"] = True
    body |= {"adminAccess": True} if admin else {}
    spec = {"devices": {"requests": [{"name": "r", "exactly": body}]}}
    return _with_type("ResourceClaim", {**claim, "spec": spec})
