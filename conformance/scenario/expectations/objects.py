"""``object``, ``objects``, ``none``: one object as described, so many of them, or no such one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

from conformance.scenario.base import ObjectSelector
from conformance.scenario.expectations.base import Cluster, Known, Seen, Timed, exactly_one
from conformance.scenario.expectations.conditions import differences, unmet
from kube.values import Obj

Cel = Annotated[str, Field(min_length=1, max_length=10_240)]


class ObjectExpectation(Timed):
    """Exactly one object is found, and it is as described."""

    object: ObjectSelector
    match: dict[str, Any] | None = Field(
        default=None, description="a part of the object; lists are compared element by element"
    )
    cel: Cel | tuple[Cel, ...] = Field(
        default=(), description="CEL over `object` that must be true"
    )
    columns: dict[str, str] = Field(
        default={}, description="what `kubectl get` prints of it: column -> text"
    )

    def describe(self) -> str:
        cel = " and ".join(_listed(self.cel))
        columns = ", ".join(f"{name} {text!r}" for name, text in self.columns.items())
        return (
            self.object.describe()
            + (f" with {cel}" if cel else "")
            + (f" printed with {columns}" if columns else "")
        )

    def evaluate(self, cluster: Cluster) -> Seen:
        def wrong(found: Obj) -> Iterable[str]:
            yield from differences(self.match or {}, found)
            yield from unmet(_listed(self.cel), {**cluster.captured, "object": found})
            if self.columns:
                printed = cluster.columns(self.object, found["metadata"]["name"])
                for name, text in self.columns.items():
                    if printed.get(name) != text:
                        yield f"column {name} is {printed.get(name, 'not there')!r}"

        return exactly_one(cluster, self.object, "object", wrong)

    def lint(self, known: Known) -> None:
        known.selected(("object",), self.object)
        known.part(("match",), self.match, self.object)
        known.condition(("cel",), _listed(self.cel), "object", self.object)

    def placed(self) -> Iterable[tuple[str, int]]:
        ended = ((self.match or {}).get("status") or {}).get("succeeded")
        if self.object.kind == "Job" and self.object.name and isinstance(ended, int):
            yield self.object.name, ended


class ObjectsExpectation(Timed):
    """The objects that are found are as many as given, and as described."""

    objects: ObjectSelector
    count: int | None = Field(default=None, ge=0, description="how many of them")
    cel: Cel | tuple[Cel, ...] = Field(
        default=(), description="CEL over `objects` (a list, by name) that must be true"
    )

    def describe(self) -> str:
        number = "" if self.count is None else f"{self.count} x "
        cel = " and ".join(_listed(self.cel))
        return number + self.objects.describe() + (f" with {cel}" if cel else "")

    def evaluate(self, cluster: Cluster) -> Seen:
        what = self.objects.describe()
        found = cluster.find(self.objects)
        observed: dict[str, Any] = {"objects": cluster.canonical(what), "found": len(found)}
        wrong = []
        if self.count is not None and len(found) != self.count:
            names = ", ".join(obj["metadata"]["name"] for obj in found)
            wrong.append(f"{len(found)} found" + (f" ({names})" if names else ""))
        wrong += unmet(_listed(self.cel), {**cluster.captured, "objects": found})
        observed["fits"] = not wrong
        return Seen(not wrong, f"{what}: " + ("; ".join(wrong) or "as described"), observed)

    def lint(self, known: Known) -> None:
        known.selected(("objects",), self.objects)
        known.condition(("cel",), _listed(self.cel), "objects", self.objects)


class TogetherExpectation(Timed):
    """Several objects, each of them found once, are to one another as CEL says."""

    together: dict[Annotated[str, Field(pattern=r"^[a-z][A-Za-z0-9]*$")], ObjectSelector] = Field(
        min_length=2, description="name -> an object, which CEL reads by that name"
    )
    cel: Cel | tuple[Cel, ...] = Field(description="CEL over these names that must be true")

    def describe(self) -> str:
        objects = " and ".join(selector.describe() for selector in self.together.values())
        return f"{objects} with {' and '.join(_listed(self.cel))}"

    def evaluate(self, cluster: Cluster) -> Seen:
        what = " and ".join(selector.describe() for selector in self.together.values())
        observed: dict[str, Any] = {"together": cluster.canonical(what)}
        there: dict[str, Obj] = {}
        for name, selector in self.together.items():
            found = cluster.find(selector)
            if len(found) != 1:
                return Seen(False, f"{selector.describe()}: {len(found)} found", observed)
            there[name] = found[0]
        wrong = [*unmet(_listed(self.cel), {**cluster.captured, **there})]
        return Seen(not wrong, "; ".join(wrong) or "as described", observed | {"fits": not wrong})

    def lint(self, known: Known) -> None:
        for name, selector in self.together.items():
            known.selected(("together", name), selector)
        known.relation(("cel",), _listed(self.cel), tuple(self.together))


class NoneExpectation(Timed):
    """No such object is there."""

    none: ObjectSelector

    def describe(self) -> str:
        return f"no {self.none.describe()}"

    def evaluate(self, cluster: Cluster) -> Seen:
        what = self.none.describe()
        found = cluster.find(self.none)
        names = ", ".join(_with_state(obj) for obj in found)
        observed = {"none": cluster.canonical(what), "found": len(found)}
        return Seen(not found, f"{what}: {names or 'none'}", observed)

    def lint(self, known: Known) -> None:
        known.selected(("none",), self.none, gone=True)


def _listed(cel: str | tuple[str, ...]) -> tuple[str, ...]:
    """CEL given as one text or as a list, as a list."""
    return (cel,) if isinstance(cel, str) else cel


def _with_state(obj: Obj) -> str:
    meta, spec = obj["metadata"], obj.get("spec") or {}
    if not meta.get("deletionTimestamp"):
        return str(meta["name"])
    waits = ""
    if meta.get("finalizers"):
        waits = f", with finalizers {', '.join(meta['finalizers'])}"
    elif spec.get("resourceClaims") and spec.get("nodeName"):
        # UnprepareResources (pkg/kubelet/cm/dra/manager.go) fails without an event.
        waits = (
            f"; a driver that does not unprepare shows in the kubelet's log on {spec['nodeName']}"
        )
    return f"{meta['name']} (being deleted{waits})"
