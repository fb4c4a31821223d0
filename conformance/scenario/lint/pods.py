"""What is wrong in the resource claims of pods, wherever in a manifest a pod is described.

A pod spec is recognised by its list of containers, so the templates of Jobs, Deployments and of any
custom resource are checked alike. The rules are those of the API server
(pkg/apis/core/validation), and its words are used so that users find them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.scenario.yamlfile import PathTuple, Problem

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")


def check_pods(data: Any, path: PathTuple = ()) -> Iterator[Problem]:
    """Problems of every pod spec in ``data``, which was found at ``path``."""
    if isinstance(data, dict):
        containers = data.get("containers")
        if isinstance(containers, list) and all(isinstance(item, dict) for item in containers):
            yield from _pod_spec(data, path)
        for key, value in data.items():
            yield from check_pods(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from check_pods(value, (*path, index))


def _pod_spec(spec: Mapping[str, Any], path: PathTuple) -> Iterator[Problem]:
    declared: list[str] = []
    claims = spec.get("resourceClaims")
    for index, claim in enumerate(claims if isinstance(claims, list) else []):
        place = (*path, "resourceClaims", index)
        if not isinstance(claim, dict):
            yield Problem(place, f"is not an object with a name and {' or '.join(_SOURCES)}")
            continue
        name = claim.get("name")
        if not name:
            yield Problem(place, "a pod resource claim needs a name, which containers refer to")
        elif name in declared:
            yield Problem((*place, "name"), f"{name!r} is given twice; names must be unique")
        else:
            declared.append(name)
        yield from _source(claim, place)
    for kind in _CONTAINERS:
        yield from _containers(spec.get(kind), (*path, kind), declared)


def _source(claim: Mapping[str, Any], place: PathTuple) -> Iterator[Problem]:
    if "source" in claim:
        inside = claim["source"] if isinstance(claim["source"], dict) else {}
        fields = [field for field in _SOURCES if field in inside] or list(_SOURCES)
        yield Problem(
            (*place, "source"),
            "source is gone since Kubernetes 1.31; write"
            f" {' or '.join(fields)} directly beside name",
        )
        return
    given = [field for field in _SOURCES if claim.get(field) is not None]
    if not given:
        yield Problem(
            place, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        )
    elif len(given) > 1:
        yield Problem(
            place,
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        )


def _containers(containers: Any, path: PathTuple, declared: list[str]) -> Iterator[Problem]:
    for index, container in enumerate(containers if isinstance(containers, list) else []):
        resources = container.get("resources") if isinstance(container, dict) else None
        claims = resources.get("claims") if isinstance(resources, dict) else None
        for position, claim in enumerate(claims if isinstance(claims, list) else []):
            place = (*path, index, "resources", "claims", position)
            name = claim.get("name") if isinstance(claim, dict) else None
            known = f": {', '.join(declared)}" if declared else ", which is empty"
            if not name:
                yield Problem(place, "needs the name of an entry of the pod's resourceClaims")
            elif name not in declared:
                yield Problem(
                    (*place, "name"),
                    f"{name!r} must be one of the names in the pod's resourceClaims{known}",
                )
