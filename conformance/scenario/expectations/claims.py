"""``claim``: whether a ResourceClaim is allocated, which devices it has, who may use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, model_validator

from conformance.scenario.base import ObjectSelector, Strict
from conformance.scenario.expectations.base import Cluster, Known, Seen, Timed, exactly_one
from kube.values import Obj

Names = Annotated[tuple[str, ...], Field(min_length=1)]


class Generated(Strict):
    """A claim that was made for a pod: of a template, or for extended resources."""

    owned_by: str | None = Field(default=None, description="name of the pod")
    pod_claim: str | None = Field(default=None, description="name in pod.spec.resourceClaims")

    @model_validator(mode="after")
    def _some(self) -> Generated:
        if self.owned_by is None and self.pod_claim is None:
            raise ValueError("give the claim's name, or ownedBy or podClaim of a generated one")
        return self


def _form(value: Any) -> str:
    return "(one)" if isinstance(value, str | list | tuple) else "(mapping)"


class ClaimExpectation(Timed):
    """A ResourceClaim's allocation, its devices, and the pods that it is reserved for.

    What a claim without a status says of each: it is not allocated and reserved for nobody.
    """

    claim: Annotated[
        Annotated[str, Tag("(one)")] | Annotated[Generated, Tag("(mapping)")],
        Discriminator(_form),
    ] = Field(description="name of the claim, or the pod that it was made for")
    namespace: str | None = Field(default=None, description="default: that of the scenario")
    allocated: bool | None = Field(default=None, description="whether it has an allocation")
    devices: (
        Annotated[
            Annotated[Names, Tag("(one)")] | Annotated[dict[str, Names], Tag("(mapping)")],
            Discriminator(_form),
        ]
        | None
    ) = Field(
        default=None,
        description="all allocated devices in any order, a device that is allocated twice given"
        " twice; or request -> those of each request. DEVICE, POOL/DEVICE or DRIVER/POOL/DEVICE",
    )
    reserved_for: tuple[str, ...] | None = Field(
        default=None,
        description="names of all pods in status.reservedFor, in any order, with the uids that"
        " those of them have that are there; [] for nobody",
    )

    @model_validator(mode="after")
    def _something(self) -> ClaimExpectation:
        if self.allocated is None and self.devices is None and self.reserved_for is None:
            raise ValueError("expect allocated, devices or reservedFor of the claim")
        if self.allocated is not None and self.devices is not None:
            raise ValueError("devices are those of an allocation; leave allocated out")
        if self.allocated is False and self.reserved_for:
            raise ValueError("only an allocated claim is reserved for a pod")
        return self

    @property
    def _selector(self) -> ObjectSelector:
        if isinstance(self.claim, str):
            return ObjectSelector(kind="ResourceClaim", name=self.claim, namespace=self.namespace)
        owner, entry = self.claim.owned_by, self.claim.pod_claim
        return ObjectSelector(
            kind="ResourceClaim", owned_by=owner, pod_claim=entry, namespace=self.namespace
        )

    def describe(self) -> str:
        parts = []
        if self.allocated is not None:
            parts.append("allocated" if self.allocated else "not allocated")
        if self.devices is not None:
            parts.append(f"allocated {_told(self._wanted)}")
        if self.reserved_for is not None:
            parts.append(f"reserved for {', '.join(self.reserved_for) or 'nobody'}")
        return f"{self._selector.describe()} {' and '.join(parts)}"

    @property
    def _wanted(self) -> list[tuple[str | None, str]]:
        """(request, None for any, and device) of each device that is expected."""
        if not isinstance(self.devices, dict):
            return [(None, device) for device in self.devices or ()]
        return [(name, device) for name, group in self.devices.items() for device in group]

    def evaluate(self, cluster: Cluster) -> Seen:
        return exactly_one(
            cluster, self._selector, "claim", lambda claim: self._wrong(claim, cluster)
        )

    def _wrong(self, claim: Obj, cluster: Cluster) -> Iterator[str]:
        status = claim.get("status") or {}
        allocation = status.get("allocation")
        results = [
            (one["request"], f"{one['driver']}/{one['pool']}/{one['device']}")
            for one in ((allocation or {}).get("devices") or {}).get("results") or ()
        ]
        has = "not allocated" if allocation is None else f"allocated {_told(results)}"
        if self.allocated is not None and self.allocated != (allocation is not None):
            yield f"expected {'' if self.allocated else 'not '}allocated, it is {has}"
        if self.devices is not None and not _are(results, self._wanted):
            yield f"expected {_told(self._wanted)}, it is {has}"
        if self.reserved_for is not None:
            users = [*map(_consumer, status.get("reservedFor") or ())]
            told = f"it is for {', '.join(users) or 'nobody'}"
            if Counter(users) != Counter(self.reserved_for):
                yield f"expected reserved for {', '.join(self.reserved_for) or 'nobody'}, {told}"
            for user in status.get("reservedFor") or ():
                uid = self._uid(user["name"], cluster)
                if user["name"] in self.reserved_for and uid not in {None, user["uid"]}:
                    yield f"{told}, with the uid {user['uid']}; the pod has {uid}"

    def _uid(self, pod: str, cluster: Cluster) -> str | None:
        """The uid of the pod that has the name now; None if there is none."""
        wanted = ObjectSelector(kind="Pod", name=pod, namespace=self.namespace)
        return next((str(found["metadata"]["uid"]) for found in cluster.find(wanted)), None)

    def lint(self, known: Known) -> None:
        selector = self._selector
        if selector.name is not None:
            known.named(("claim",), "ResourceClaim", selector.name, self.namespace)
        else:
            known.selected(("claim",), selector)
        pods = (selector.owned_by,) if selector.owned_by else ()
        for request in self.devices if isinstance(self.devices, dict) else ():
            known.request(
                ("devices", request),
                request,
                selector.name,
                pods,
                selector.pod_claim,
                alternatives=True,
            )
        for _, device in self._wanted:
            known.device(("devices",), device.rpartition("/")[2])
        for index, pod in enumerate(self.reserved_for or ()):
            known.named(("reservedFor", index), "Pod", pod, self.namespace)


def _are(results: Sequence[tuple[str, str]], wanted: Sequence[tuple[str | None, str]]) -> bool:
    """Whether these are the devices that are named, each as often as it is.

    The names with the most parts choose first: what they fit, shorter ones may fit, too.
    """
    left = [*results]
    for request, device in sorted(wanted, key=lambda one: -one[1].count("/")):
        fitting = (
            one for one in left if request in {None, one[0]} and f"/{one[1]}".endswith(f"/{device}")
        )
        chosen = next(fitting, None)
        if chosen is None:
            return False
        left.remove(chosen)
    return not left


def _told(devices: Sequence[tuple[str | None, str]]) -> str:
    each = (f"{device} for {request}" if request else device for request, device in devices)
    return ", ".join(each) or "no device"


def _consumer(user: Obj) -> str:
    """The name of a pod; of anything else with what it is."""
    is_pod = user["resource"] == "pods" and not user.get("apiGroup")
    return str(user["name"]) if is_pod else f"{user['resource']}/{user['name']}"
