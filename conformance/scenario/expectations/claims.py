"""``claim``: whether a ResourceClaim is allocated, which devices it has, who may use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, model_validator

from conformance.scenario.base import ObjectSelector, Strict
from conformance.scenario.expectations.base import Cluster, Evaluation, Timed, evaluate_one_object
from conformance.scenario.lint_context import LintContext
from kube.values import Obj

Names = Annotated[tuple[str, ...], Field(min_length=1)]


class Generated(Strict):
    """A claim that was made for a pod: of a template, or for extended resources."""

    owned_by: str | None = Field(default=None, description="name of the pod, or of the PodGroup")
    pod_claim: str | None = Field(default=None, description="name in pod.spec.resourceClaims")

    @model_validator(mode="after")
    def _some(self) -> Generated:
        if self.owned_by is None and self.pod_claim is None:
            raise ValueError("give the claim's name, or ownedBy or podClaim of a generated one")
        return self


def _tag_of_form(value: Any) -> str:
    return "(one)" if isinstance(value, str | list | tuple) else "(mapping)"


class ClaimExpectation(Timed):
    """A ResourceClaim's allocation, its devices, and the pods that it is reserved for.

    What a claim without a status says of each: it is not allocated and reserved for nobody.
    """

    claim: Annotated[
        Annotated[str, Tag("(one)")] | Annotated[Generated, Tag("(mapping)")],
        Discriminator(_tag_of_form),
    ] = Field(description="name of the claim, or the pod that it was made for")
    namespace: str | None = Field(default=None, description="default: that of the scenario")
    allocated: bool | None = Field(default=None, description="whether it has an allocation")
    devices: (
        Annotated[
            Annotated[Names, Tag("(one)")] | Annotated[dict[str, Names], Tag("(mapping)")],
            Discriminator(_tag_of_form),
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
        " those of them have that are there; podgroups/NAME is a PodGroup; [] for nobody",
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
        phrases = []
        if self.allocated is not None:
            phrases.append("allocated" if self.allocated else "not allocated")
        if self.devices is not None:
            phrases.append(f"allocated {_join_devices(self._expected_devices)}")
        if self.reserved_for is not None:
            phrases.append(f"reserved for {', '.join(self.reserved_for) or 'nobody'}")
        return f"{self._selector.describe()} {' and '.join(phrases)}"

    @property
    def _expected_devices(self) -> list[tuple[str | None, str]]:
        """Return (request, None for any, and device) of each device that is expected."""
        if not isinstance(self.devices, dict):
            return [(None, device) for device in self.devices or ()]
        return [(name, device) for name, group in self.devices.items() for device in group]

    def evaluate(self, cluster: Cluster) -> Evaluation:
        return evaluate_one_object(
            cluster, self._selector, "claim", lambda claim: self._find_problems(claim, cluster)
        )

    def _find_problems(self, claim: Obj, cluster: Cluster) -> Iterator[str]:
        status = claim.get("status") or {}
        allocation = status.get("allocation")
        results = [
            (result["request"], f"{result['driver']}/{result['pool']}/{result['device']}")
            for result in ((allocation or {}).get("devices") or {}).get("results") or ()
        ]
        state = "not allocated" if allocation is None else f"allocated {_join_devices(results)}"
        if self.allocated is not None and self.allocated != (allocation is not None):
            yield f"expected {'' if self.allocated else 'not '}allocated, it is {state}"
        if self.devices is not None and not _match_devices(results, self._expected_devices):
            yield f"expected {_join_devices(self._expected_devices)}, it is {state}"
        if self.reserved_for is not None:
            users = [*map(_describe_consumer, status.get("reservedFor") or ())]
            reserved = f"it is for {', '.join(users) or 'nobody'}"
            if Counter(users) != Counter(self.reserved_for):
                expected = ", ".join(self.reserved_for) or "nobody"
                yield f"expected reserved for {expected}, {reserved}"
            for user in status.get("reservedFor") or ():
                uid = self._find_pod_uid(user["name"], cluster)
                if user["name"] in self.reserved_for and uid not in {None, user["uid"]}:
                    yield f"{reserved}, with the uid {user['uid']}; the pod has {uid}"

    def _find_pod_uid(self, pod: str, cluster: Cluster) -> str | None:
        """Return the uid of the pod that has the name now; None if there is none."""
        selector = ObjectSelector(kind="Pod", name=pod, namespace=self.namespace)
        return next(
            (str(pod_object["metadata"]["uid"]) for pod_object in cluster.find(selector)), None
        )

    def lint(self, lint: LintContext) -> None:
        selector = self._selector
        if selector.name is not None:
            lint.expects_object(("claim",), "ResourceClaim", selector.name, self.namespace)
        else:
            lint.expects_selection(("claim",), selector)
        pods = (selector.owned_by,) if selector.owned_by else ()
        for request in self.devices if isinstance(self.devices, dict) else ():
            lint.expects_request(
                ("devices", request),
                request,
                selector.name,
                pods,
                selector.pod_claim,
                alternatives=True,
            )
        for _, device in self._expected_devices:
            lint.expects_device(("devices",), device.rpartition("/")[2])
        for index, consumer in enumerate(self.reserved_for or ()):
            name = consumer.removeprefix("podgroups/")
            kind = "Pod" if name == consumer else "PodGroup"
            lint.expects_object(("reservedFor", index), kind, name, self.namespace)


def _match_devices(
    results: Sequence[tuple[str, str]], expected: Sequence[tuple[str | None, str]]
) -> bool:
    """Return whether these are the devices that are named, each as often as it is.

    The names with the most parts choose first: what they fit, shorter ones may fit, too.
    """
    unmatched_results = [*results]
    for request, device in sorted(expected, key=lambda pair: -pair[1].count("/")):
        fitting = (
            result
            for result in unmatched_results
            if request in {None, result[0]} and f"/{result[1]}".endswith(f"/{device}")
        )
        chosen = next(fitting, None)
        if chosen is None:
            return False
        unmatched_results.remove(chosen)
    return not unmatched_results


def _join_devices(devices: Sequence[tuple[str | None, str]]) -> str:
    phrases = (f"{device} for {request}" if request else device for request, device in devices)
    return ", ".join(phrases) or "no device"


def _describe_consumer(user: Obj) -> str:
    """Return the name of a pod, or the resource and name of anything else."""
    is_pod = user["resource"] == "pods" and not user.get("apiGroup")
    return str(user["name"]) if is_pod else f"{user['resource']}/{user['name']}"
