"""Checks of pods and of the templates of pods, above all of their resource claims.

Sources: pkg/apis/core/validation/validation.go, validatePodResourceClaims and
validateResourceClaimNames, as far as scenarios reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from conformance.targets.reference.apiserver.validation import names
from conformance.targets.reference.apiserver.validation.errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from conformance.targets.seam.values import Obj

_RESTART_POLICIES = ("Always", "OnFailure", "Never")


def is_mirror(pod: Obj) -> bool:
    """Whether a pod stands for a static pod of a kubelet."""
    return "kubernetes.io/config.mirror" in (pod["metadata"].get("annotations") or {})


def check_spec(spec: Obj, path: str, *, mirror: bool = False) -> Iterator[FieldError]:
    """A pod's or pod template's spec, defaults applied; ``path`` is its field path."""
    pod_claims = spec.get("resourceClaims") or []
    claim_names = {claim["name"] for claim in pod_claims if claim.get("name")}
    if mirror:
        yield from (forbidden("", "static pods do not support resource claims") for _ in pod_claims)
    else:
        yield from _pod_claims(pod_claims, f"{path}.resourceClaims")
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    seen: set[str] = set()
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or []):
            inner = f"{path}.{field}[{index}]"
            yield from _container(container, claim_names, inner)
            name = container.get("name") or ""
            if name and name in seen:
                yield duplicate(f"{inner}.name", name)
            seen.add(name)
    if (spec.get("resources") or {}).get("claims") is not None:
        detail = "claims may not be set for Resources at pod-level"
        yield forbidden(f"{path}.resources.claims", detail)
    if spec.get("restartPolicy") not in _RESTART_POLICIES:
        yield not_supported(
            f"{path}.restartPolicy", spec.get("restartPolicy") or "", _RESTART_POLICIES
        )
    if spec.get("nodeName"):
        yield from names.subdomain(spec["nodeName"], f"{path}.nodeName")


def check_update(new: Obj, old: Obj) -> Iterator[FieldError]:
    """A pod's spec is immutable but for the node it is bound to and a few others."""
    allowed = {"nodeName", "activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"}
    if all(gate in (old.get("schedulingGates") or []) for gate in new.get("schedulingGates") or []):
        allowed.add("schedulingGates")  # They may be removed.
    fields = (set(new) | set(old)) - allowed
    without_images = [_without_images(spec) for spec in (new, old)]
    if any(without_images[0].get(field) != without_images[1].get(field) for field in fields):
        yield forbidden(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
            "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
            "(allow it to be set to 1 if it was previously negative)",
        )


def _pod_claims(claims: Sequence[Obj], path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        inner = f"{path}[{index}]"
        name = claim.get("name") or ""
        direct, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        if not name:
            yield required(f"{inner}.name")
        elif name in seen:
            yield duplicate(f"{inner}.name", name)
        else:
            yield from names.label(name, f"{inner}.name")
            seen.add(name)
        # What the API server prints is its internal type, which has no JSON names.
        shown = {"Name": name, "ResourceClaimName": direct, "ResourceClaimTemplateName": template}
        if direct is not None and template is not None:
            yield invalid(
                inner,
                shown,
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be "
                "specified",
            )
        if direct is None and template is None:
            yield invalid(
                inner,
                shown,
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            )
        if direct is not None:
            yield from names.subdomain(direct, f"{inner}.resourceClaimName")
        if template is not None:
            yield from names.subdomain(template, f"{inner}.resourceClaimTemplateName")


def _container(container: Obj, claim_names: set[str], path: str) -> Iterator[FieldError]:
    name = container.get("name") or ""
    if not name:
        yield required(f"{path}.name")
    else:
        yield from names.label(name, f"{path}.name")
    if not container.get("image"):
        yield required(f"{path}.image")
    resources = container.get("resources") or {}
    yield from _extended_resources(resources, f"{path}.resources")
    inner = f"{path}.resources.claims"
    yield from _container_claims(resources.get("claims") or [], claim_names, inner)


def _extended_resources(resources: Obj, path: str) -> Iterator[FieldError]:
    """Requests of what cannot be overcommitted must equal its limits."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, amount in limits.items():
        if _is_extended(name) and not amount.isdigit():
            yield invalid(f"{path}.limits[{name}]", amount, "must be an integer")
    for name, amount in requests.items():
        if not _is_extended(name):
            continue
        if not amount.isdigit():
            yield invalid(f"{path}.requests[{name}]", amount, "must be an integer")
        if name not in limits:
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif limits[name] != amount:
            detail = f"must be equal to {name} limit of {limits[name]}"
            yield invalid(f"{path}.requests", amount, detail)


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def _container_claims(
    claims: Sequence[Any], claim_names: set[str], path: str
) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        inner = f"{path}[{index}]"
        name, request = claim.get("name") or "", claim.get("request") or ""
        if not name:
            yield required(inner)
            continue
        if name in seen:
            yield duplicate(inner, name)
        else:
            key = name
            if request:
                yield from names.label(request, f"{inner}.request")
                key = f"{name}/{request}"
            if key in seen:
                yield duplicate(inner, key)
            elif not request and any(other.startswith(f"{name}/") for other in seen):
                yield duplicate(inner, name)
            seen.add(key)
        if name not in claim_names:
            where = f": {', '.join(sorted(claim_names))}" if claim_names else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{where}"
            yield not_found(inner, name, detail)


def _without_images(spec: Obj) -> Obj:
    plain = dict(spec)
    for field in ("containers", "initContainers"):
        if field in plain:
            plain[field] = [{**container, "image": ""} for container in plain[field]]
    return plain
