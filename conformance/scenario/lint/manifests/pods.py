"""What is wrong in the resource claims of pods, wherever in a manifest a pod is described.

A pod spec is recognised by its list of containers, so the templates of Jobs, Deployments and of any
custom resource are checked alike. The rules are those of the API server
(pkg/apis/core/validation), and its words are used so that users find them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.scenario.documents.yamlfile import (
    PathTuple,
    Problem,
    elements,
    mapping,
    text,
    walk,
)

CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
SOURCES = {
    "resourceClaimName": "ResourceClaim",
    "resourceClaimTemplateName": "ResourceClaimTemplate",
}
"""Field of an entry of ``resourceClaims`` -> the kind that it names."""


def pod_specs(data: Any, path: PathTuple = ()) -> Iterator[tuple[PathTuple, Mapping[str, Any]]]:
    """Every pod spec in ``data``, which was found at ``path``."""
    for place, value in walk(data, path):
        containers = value.get("containers") if isinstance(value, dict) else None
        if isinstance(containers, list) and all(isinstance(item, dict) for item in containers):
            yield place, value


def check_pods(data: Any, path: PathTuple = ()) -> Iterator[Problem]:
    """Problems of every pod spec in ``data``, which was found at ``path``."""
    for place, spec in pod_specs(data, path):
        yield from _pod_spec(spec, place)


def _pod_spec(spec: Mapping[str, Any], path: PathTuple) -> Iterator[Problem]:
    declared: list[str] = []
    claims = spec.get("resourceClaims")
    for index, claim in enumerate(claims if isinstance(claims, list) else []):
        place = (*path, "resourceClaims", index)
        if not isinstance(claim, dict):
            yield Problem(place, f"is not an object with a name and {' or '.join(SOURCES)}")
            continue
        name = text(claim.get("name"))
        if not name:
            yield Problem(place, "a pod resource claim needs a name, which containers refer to")
        elif name in declared:
            yield Problem((*place, "name"), f"{name!r} is given twice; names must be unique")
        else:
            declared.append(name)
        yield from _source(claim, place)
    for kind in CONTAINERS:
        for index, container in elements(spec.get(kind)):
            place = (*path, kind, index, "resources", "claims")
            yield from _wanted(mapping(container.get("resources")).get("claims"), place, declared)


def _source(claim: Mapping[str, Any], place: PathTuple) -> Iterator[Problem]:
    if "source" in claim:
        inside = claim["source"] if isinstance(claim["source"], dict) else {}
        fields = [field for field in SOURCES if field in inside] or list(SOURCES)
        yield Problem(
            (*place, "source"),
            "source is gone since Kubernetes 1.31; write"
            f" {' or '.join(fields)} directly beside name",
        )
        return
    given = [field for field in SOURCES if claim.get(field) is not None]
    if not given:
        yield Problem(
            place, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        )
    elif len(given) > 1:
        yield Problem(
            place,
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        )


def _wanted(claims: Any, path: PathTuple, declared: list[str]) -> Iterator[Problem]:
    known = f": {', '.join(declared)}" if declared else ", which is empty"
    for index, claim in enumerate(claims if isinstance(claims, list) else []):
        name = mapping(claim).get("name")
        if not name:
            yield Problem((*path, index), "needs the name of an entry of the pod's resourceClaims")
        elif name not in declared:
            says = f"{name!r} must be one of the names in the pod's resourceClaims{known}"
            yield Problem((*path, index, "name"), says)
