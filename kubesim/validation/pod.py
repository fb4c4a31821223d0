"""Checks of pods, of the templates of pods, and of a pod's status, above all of resource claims.

Sources: pkg/apis/core/validation/validation.go, validatePodResourceClaims,
validateResourceClaimNames, validatePodResourceClaimStatuses and
validatePodExtendedResourceClaimStatus, as far as scenarios reach; ``PrepareForUpdate`` of
podStatusStrategy in pkg/registry/core/pod/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kube.values import Obj
from kubesim.pods import list_containers
from kubesim.validation import names
from kubesim.validation.amounts import check_requirements
from kubesim.validation.errors import (
    FieldError,
    accept_any,
    check_fields,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    require,
    required,
)
from kubesim.validation.taints import check_added, check_tolerations

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_KEPT: Final = (
    "qosClass",
    "resourceClaimStatuses",
    "extendedResourceClaimStatus",
    "nodeAllocatableResourceClaimStatuses",
)


MIRROR: Final = "kubernetes.io/config.mirror"
"""Annotation of a pod that stands for a static pod of a kubelet."""


def is_mirror(pod: Obj) -> bool:
    """Return whether a pod stands for a static pod of a kubelet."""
    return MIRROR in (pod["metadata"].get("annotations") or {})


def check_new(pod: Obj) -> Iterator[FieldError]:
    """Check a new pod, defaults applied."""
    spec = pod["spec"]
    yield from check_spec(spec, "spec", mirror=is_mirror(pod))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        yield forbidden("spec.nodeName", detail)


def check_spec(spec: Obj, path: str, *, mirror: bool = False) -> Iterator[FieldError]:
    """Check a pod's or pod template's spec, defaults applied; ``path`` is its field path."""
    if mirror:
        # What upstream's field.NewPath("") is as text.
        static_pod_detail = "static pods do not support resource claims"
        yield from (forbidden("[]", static_pod_detail) for _ in spec.get("resourceClaims") or [])
    else:
        yield from _check_pod_claims(spec.get("resourceClaims") or [], f"{path}.resourceClaims")
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    container_names: set[str] = set()
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or []):
            inner = f"{path}.{field}[{index}]"
            required_fields = {"name": require(names.check_label), "image": require(accept_any)}
            yield from check_fields(container, inner, required_fields)
            yield from _check_container_resources(container, spec, inner)
            name = container.get("name") or ""
            if name in container_names:
                yield duplicate(f"{inner}.name", name)
            if name or field == "containers":
                container_names.add(name)
    own_claims = (spec.get("resources") or {}).get("claims")
    if own_claims is not None:
        detail = "claims may not be set for Resources at pod-level"
        yield forbidden(f"{path}.resources.claims", detail)
        yield from _check_container_claims(own_claims, spec, f"{path}.resources.claims")
    policy = spec.get("restartPolicy") or ""
    if policy not in _RESTART_POLICIES:
        yield not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES)
    yield from _check_gates(spec.get("schedulingGates") or [], f"{path}.schedulingGates")
    if spec.get("nodeName"):
        yield from names.check_subdomain(spec["nodeName"], f"{path}.nodeName")
    if (group := spec.get("schedulingGroup")) is not None:
        yield from _check_group(group, f"{path}.schedulingGroup")
    yield from check_tolerations(spec.get("tolerations") or [], f"{path}.tolerations")


def _check_group(group: Obj, path: str) -> Iterator[FieldError]:
    """Check of which PodGroup a pod is (``validateSchedulingGroup``)."""
    name = group.get("podGroupName")
    if name is None:
        yield invalid(f"{path}.podGroupName", None, "must specify one of: `podGroupName`")
    else:
        yield from names.check_subdomain(name, f"{path}.podGroupName")


def _check_gates(gates: Sequence[Obj], path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name") or ""
        yield from names.check_label_key(name, f"{path}[{index}]")
        if name in seen:
            yield duplicate(f"{path}[{index}]", name)
        seen.add(name)


def check_update(new_pod: Obj, old_pod: Obj) -> Iterator[FieldError]:
    """Check a changed pod, of whose spec few fields may change (``ValidatePodUpdate``)."""
    new, old = new_pod["spec"], old_pod["spec"]
    yield from check_spec(new, "spec", mirror=is_mirror(new_pod))
    for field in ("containers", "initContainers"):
        containers = new.get(field) or []
        if len(containers) != len(old.get(field) or []):
            yield forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return
        for index, container in enumerate(containers):
            if not container.get("image"):
                yield required(f"spec.{field}[{index}].image")
    tolerations, old_tolerations = (spec.get("tolerations") or [] for spec in (new, old))
    yield from check_added(tolerations, old_tolerations, "spec.tolerations")
    gates, old_gates = (
        [gate.get("name") or "" for gate in spec.get("schedulingGates") or []]
        for spec in (new, old)
    )
    for index, name in enumerate(gates):
        if name not in old_gates and name not in gates[index + 1 :]:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield forbidden(f"spec.schedulingGates[{index}].name", detail)
    changeable = {"activeDeadlineSeconds", "schedulingGates", "tolerations"}
    if old_gates:  # only additions are, which are not looked at here
        changeable |= {"affinity", "nodeSelector"}
    immutable_fields = [
        {name: value for name, value in _without_images(spec).items() if name not in changeable}
        for spec in (new, old)
    ]
    if immutable_fields[0] != immutable_fields[1]:
        yield forbidden(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
            "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
            "(allow it to be set to 1 if it was previously negative)",
        )


def _without_images(spec: Obj) -> Obj:
    stripped = dict(spec)
    for field in ("containers", "initContainers"):
        if field in stripped:
            stripped[field] = [{**container, "image": ""} for container in stripped[field]]
    return stripped


def _check_pod_claims(claims: Sequence[Obj], path: str) -> Iterator[FieldError]:
    names_so_far: set[str] = set()
    for index, claim in enumerate(claims):
        inner = f"{path}[{index}]"
        name = claim.get("name") or ""
        direct, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        if name in names_so_far:
            yield duplicate(f"{inner}.name", name)
        else:
            yield from require(names.check_label)(name, f"{inner}.name")
        names_so_far |= {name} - {""}
        # What the API server prints is its internal type, which has no JSON names.
        internal_form = {
            "Name": name,
            "ResourceClaimName": direct,
            "ResourceClaimTemplateName": template,
        }
        if direct is not None and template is not None:
            choices = "`resourceClaimName` or `resourceClaimTemplateName`"
            yield invalid(inner, internal_form, f"at most one of {choices} may be specified")
        if direct is None and template is None:
            choices = "`resourceClaimName`, `resourceClaimTemplateName`"
            yield invalid(inner, internal_form, f"must specify one of: {choices}")
        for field in ("resourceClaimName", "resourceClaimTemplateName"):
            if claim.get(field) is not None:
                yield from names.check_subdomain(claim[field], f"{inner}.{field}")


def check_devices(spec: Obj, path: str) -> Iterator[FieldError]:
    """Check in a pod's spec what asks for devices, and nothing else.

    This holds for a part of a pod, too, such as a patch for kustomize or a custom resource has.
    """
    yield from _check_pod_claims(spec.get("resourceClaims") or [], f"{path}.resourceClaims")
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or []):
            yield from _check_container_resources(container, spec, f"{path}.{field}[{index}]")


def _check_container_resources(container: Obj, spec: Obj, path: str) -> Iterator[FieldError]:
    resources = container.get("resources") or {}
    yield from check_requirements(resources, f"{path}.resources")
    inner = f"{path}.resources.claims"
    yield from _check_container_claims(resources.get("claims") or [], spec, inner)


def _check_container_claims(claims: Sequence[Any], spec: Obj, path: str) -> Iterator[FieldError]:
    claim_names = {item["name"] for item in spec.get("resourceClaims") or [] if item.get("name")}
    claims_so_far: set[str] = set()
    for index, claim in enumerate(claims):
        inner = f"{path}[{index}]"
        name, request = claim.get("name") or "", claim.get("request") or ""
        if not name:
            yield required(inner)
            continue
        if name in claims_so_far:
            yield duplicate(inner, name)
        else:
            key = f"{name}/{request}" if request else name
            if request:
                yield from names.check_label(request, f"{inner}.request")
            if key in claims_so_far:
                yield duplicate(inner, key)
            elif not request and any(other.startswith(f"{name}/") for other in claims_so_far):
                yield duplicate(inner, name)
            claims_so_far.add(key)
        if name not in claim_names:
            where = f": {', '.join(sorted(claim_names))}" if claim_names else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{where}"
            yield not_found(inner, name, detail)


def check_binding(binding: Obj) -> Iterator[FieldError]:
    """Check what a pod is to be bound to (``ValidatePodBinding``)."""
    target = binding.get("target") or {}
    kind, name = target.get("kind") or "", target.get("name") or ""
    if kind not in ("", "Node"):
        yield not_supported("target.kind", kind, ("Node", "<empty>"))
    if not name:
        yield required("target.name")
    elif kind in ("", "Node"):
        yield from names.check_subdomain(name, "target.name")


def keep_claims(new: Obj, old: Obj) -> None:
    """Keep what a client left out that may not know of it, in place; an empty list clears it."""
    for field in _KEPT:
        if field in old["status"]:
            new["status"].setdefault(field, old["status"][field])


def check_status(pod: Obj) -> Iterator[FieldError]:
    """Check a changed status of a pod, as far as it is about claims."""
    spec, status = pod["spec"], pod["status"]
    entries = {claim["name"] for claim in spec.get("resourceClaims") or []}
    status_names: set[str] = set()
    for index, claim_status in enumerate(status.get("resourceClaimStatuses") or []):
        path, name = f"status.resourceClaimStatuses[{index}]", claim_status.get("name") or ""
        if name not in entries:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            yield invalid(f"{path}.name", name, detail)
        if name in status_names:
            yield duplicate(f"{path}.name", name)
        status_names.add(name)
        if claim_status.get("resourceClaimName") is not None:
            yield from names.check_subdomain(
                claim_status["resourceClaimName"], f"{path}.resourceClaimName"
            )
    if status.get("extendedResourceClaimStatus") is not None:
        claim_status = status["extendedResourceClaimStatus"]
        yield from _check_extended_claim_status(
            claim_status, spec, "status.extendedResourceClaimStatus"
        )


def _check_extended_claim_status(claim_status: Obj, spec: Obj, path: str) -> Iterator[FieldError]:
    requests = {
        one["name"]: (one.get("resources") or {}).get("requests") or {}
        for one in list_containers(spec)
    }
    mappings = claim_status.get("requestMappings") or []
    if not mappings:
        yield required(f"{path}.requestMappings", "at least one request mapping is required")
    keys_so_far = []
    for index, mapping in enumerate(mappings):
        inner = f"{path}.requestMappings[{index}]"
        key = {f: mapping.get(f) or "" for f in ("containerName", "resourceName", "requestName")}
        container, resource, request = key.values()
        entry_path = "spec.initContainers{0} or spec.containers{0}"
        if container not in requests:
            detail = f"must match the name of an entry in {entry_path.format('.name')}"
            yield invalid(f"{inner}.containerName", container, detail)
        elif resource not in requests[container]:
            entry = entry_path.format(".resources.requests")
            detail = f"must match the extended resource name of an entry in {entry}"
            yield invalid(f"{inner}.resourceName", resource, detail)
        yield from names.check_label(request, f"{path}.requestName")
        if key in keys_so_far:
            for field, value in key.items():
                yield duplicate(f"{inner}.{field}", value)
        keys_so_far.append(key)
    yield from require(names.check_subdomain)(
        claim_status.get("resourceClaimName"), f"{path}.resourceClaimName"
    )
