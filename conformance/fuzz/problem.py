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
from conformance.fuzz.draw.pods import pods, provided, taint_rules
from conformance.fuzz.draw.problems import drawn
from conformance.targets.reference.device_source import NoDriver
from conformance.targets.reference.target import ReferenceOptions, ReferenceTarget
from kube.errors import ApiError
from kube.values import Obj
from reference_allocator.extended import IMPLICIT_PREFIX
from reference_allocator.features import Features, gates_of
from reference_allocator.gates import gates_for_version
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

    ``gates``: those that are known to be on or off.
    """

    def __init__(self, kubernetes: str, gates: Mapping[str, bool]) -> None:
        known = gates_for_version(kubernetes)
        set_ = {name: on for name, on in gates.items() if name in known and not known[name].locked}
        self.kubernetes, self.features = kubernetes, Features.for_version(kubernetes, gates)
        options = ReferenceOptions(
            kubernetes_version=kubernetes, feature_gates=set_, nodes=(), devices=NoDriver("none")
        )
        self._reference = ReferenceTarget(options)
        self._lock = threading.Lock()
        named = {"name": NAMESPACE, "labels": ADMIN_LABEL}
        self._reference.world.api.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": named}, ""
        )
        on = {name for name, is_on in self.features.to_dict().items() if is_on}
        is_on = {name: gate.default for name, gate in known.items()} | dict(gates)
        on |= {name for name, needed in _GATES.items() if all(map(is_on.get, needed))}
        self._on = frozenset(on)
        self._focus = [name for name in FOCUS if name in on or name not in GATED]

    def draw(self, seed: str, number: int) -> Problem:
        """A problem; the same arguments give the same one."""
        random = Random(f"{seed}-{number}")  # noqa: S311 -- what it draws are no secrets
        while True:
            focus = tuple(sorted(random.sample(self._focus, random.choice((2, 2, 3)))))
            small = random.randrange(3) > 0
            dice = Dice(random, calm=True, small=small, features=self._on, focus=frozenset(focus))
            document = self._document(drawn(dice, f"{seed}-{number}"), dice)
            if not self.refused(document):
                return Problem(f"{seed}-{number}", focus, document)

    def refused(self, document: Obj) -> str:
        """Why the reference's API server does not take one of the objects; empty if it does."""
        world = self._reference.world
        with self._lock, world.cluster.store.dry_run():
            for obj in objects_of(document):
                try:
                    world.api.create(obj, NAMESPACE)
                except ApiError as error:
                    return f"{obj['kind']} {obj['metadata']['name']}: {error.message}"
        return ""

    def _document(self, line: Obj, dice: Dice) -> Obj:
        """A line for `allocate` as a snapshot, with pods and the classes that they use."""
        drivers = sorted({item["spec"]["driver"] for item in line["slices"]})
        resources = provided(dice, line["deviceClasses"], drivers)
        coming = pods(dice, [claim["metadata"]["name"] for claim in line["claims"]], resources)
        wanted = {name for pod in coming for name in claims_of(pod)}
        taken = [_taken(claim) for claim in line["allocated"] if claim["status"]]
        claims = [
            _named_any(_typed("ResourceClaim", claim))
            for claim in line["claims"]
            if claim["metadata"]["name"] in wanted
        ]
        classes = [
            *(item for item in line["deviceClasses"] if item["metadata"]["name"] != "any"),
            {"metadata": {"name": ANY}, "spec": {"selectors": [_selector()]}},
        ]
        used = {body["deviceClassName"] for claim in (*claims, *taken) for body in bodies(claim)}
        asked = {name for pod in coming for name in resources_of(pod)}
        snapshot = Snapshot(
            kubernetes=self.kubernetes,
            features=self.features,
            slices=tuple(_typed("ResourceSlice", item) for item in line["slices"]),
            device_classes=tuple(
                _typed("DeviceClass", item)
                for item in classes
                if item["metadata"]["name"] in used or not asked.isdisjoint(_resources(item))
            ),
            nodes=tuple({"apiVersion": "v1", "kind": "Node", **node} for node in line["nodes"]),
            claims=tuple(claims),
            allocated=tuple(taken),
            pods=tuple(pod_of(pod["metadata"]["name"], pod["spec"]) for pod in coming),
        )
        rules = [_typed("DeviceTaintRule", item) for item in taint_rules(dice, line["slices"])]
        return {**snapshot.to_dict(), "taintRules": rules}


def snapshot_of(document: Obj) -> Obj:
    """The snapshot before the first pod comes: slices have the taints of the rules."""
    found = {name: value for name, value in document.items() if name != "taintRules"}
    found["slices"] = apply_taint_rules(document["slices"], document["taintRules"])
    return found


def gates_for(feature: str) -> tuple[str, ...]:
    """The gates that are needed for what a problem is about."""
    return _GATES.get(feature) or gates_of(feature)


def objects_of(document: Obj) -> Iterator[Obj]:
    """What is created for a problem, but for its nodes: in that order, the pods last."""
    for field in LISTS:
        for obj in document.get(field, ()):
            yield {key: value for key, value in obj.items() if key != "status"}


def bodies(claim: Obj) -> Iterator[Obj]:
    """What a claim's requests ask for: ``exactly``, or each alternative."""
    for request in claim["spec"]["devices"]["requests"]:
        if "exactly" in request:
            yield request["exactly"]
        yield from request.get("firstAvailable", ())


def pod_of(name: str, spec: Obj) -> Obj:
    """A pod that is kept from no node. ``spec``: its claims and containers."""
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
    """The names of the claims that a pod names."""
    return [item["resourceClaimName"] for item in pod["spec"].get("resourceClaims", ())]


def resources_of(pod: Obj) -> set[str]:
    """The resources that a pod's containers ask for."""
    spec = pod["spec"]
    return {
        name
        for container in (*spec.get("initContainers", ()), *spec.get("containers", ()))
        for name in container.get("resources", {}).get("limits", ())
    }


def _resources(device_class: Obj) -> tuple[str, ...]:
    """The extended resources that a class provides."""
    explicit = device_class["spec"].get("extendedResourceName", "")
    return (explicit, f"{IMPLICIT_PREFIX}{device_class['metadata']['name']}")


def _typed(kind: str, obj: Obj) -> Obj:
    return {"apiVersion": _DRA, "kind": kind, **obj}


def _selector() -> Obj:
    return {"cel": {"expression": f'device.driver.endsWith(".{DOMAIN}")'}}


def _named_any(claim: Obj) -> Obj:
    for body in bodies(claim):
        if body["deviceClassName"] == "any":
            body["deviceClassName"] = ANY
    return claim


def _taken(claim: Obj) -> Obj:
    """A claim with devices, and a spec that could have got them."""
    results = claim["status"]["allocation"]["devices"]["results"]
    admin = any(item.get("adminAccess") for item in results)
    body: Obj = {"deviceClassName": ANY, "allocationMode": "ExactCount", "count": len(results)}
    for item in results if admin else ():
        item["adminAccess"] = True
    body |= {"adminAccess": True} if admin else {}
    spec = {"devices": {"requests": [{"name": "r", "exactly": body}]}}
    return _typed("ResourceClaim", {**claim, "spec": spec})
