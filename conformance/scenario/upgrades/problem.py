"""What is found: one thing of one object that another Kubernetes minor treats otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from conformance.scenario.minor_changes import load_changes
from kube.values import Obj

GROUP: Final = "resource.k8s.io/"


@dataclass(frozen=True, slots=True)
class UpgradeProblem:
    """Something that another minor treats otherwise.

    Attributes:
        change: the row of `conformance.scenario.minor_changes`.
        item: the object that it is about, one of those that were given.
        path: where in it, as the API server writes field paths.
        text: what is otherwise for it.
    """

    change: str
    item: Obj
    path: str
    text: str

    @property
    def object(self) -> str:
        """Return kind and name of the object."""
        meta = self.item.get("metadata") or {}
        name = "/".join(str(part) for part in (meta.get("namespace"), meta.get("name")) if part)
        return f"{self.item.get('kind') or 'document'} {name}".strip()

    @property
    def advice(self) -> str:
        """Return what to do."""
        return load_changes()[self.change].advice


def is_of_dra(item: Obj) -> bool:
    """Return whether an object is one of the API group resource.k8s.io."""
    return str(item.get("apiVersion", "")).startswith(GROUP)


def list_claim_devices(item: Obj) -> Iterator[tuple[str, Obj]]:
    """Yield the path and content of ``spec.devices`` of a claim or template."""
    spec = item.get("spec") or {}
    if item.get("kind") == "ResourceClaim":
        yield "spec.devices", spec.get("devices") or {}
    elif item.get("kind") == "ResourceClaimTemplate":
        yield "spec.spec.devices", (spec.get("spec") or {}).get("devices") or {}


def list_expressions(holder: Obj) -> list[str]:
    """Return the CEL expressions of a class's spec or a request's body."""
    selectors = holder.get("selectors") or []
    expressions = ((selector.get("cel") or {}).get("expression") for selector in selectors)
    return [str(expression or "") for expression in expressions]
