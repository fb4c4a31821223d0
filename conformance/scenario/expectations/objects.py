"""``object``, ``objects``, ``none``: one object as described, so many of them, or no such one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

from conformance.scenario.base import ObjectSelector
from conformance.scenario.expectations.base import Cluster, Evaluation, Timed, evaluate_one_object
from conformance.scenario.expectations.conditions import explain_differences, explain_unmet
from conformance.scenario.lint_context import LintContext
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
        cel = " and ".join(_as_tuple(self.cel))
        columns = ", ".join(f"{name} {text!r}" for name, text in self.columns.items())
        return (
            self.object.describe()
            + (f" with {cel}" if cel else "")
            + (f" printed with {columns}" if columns else "")
        )

    def evaluate(self, cluster: Cluster) -> Evaluation:
        def find_problems(found: Obj) -> Iterable[str]:
            yield from explain_differences(self.match or {}, found)
            yield from explain_unmet(_as_tuple(self.cel), {**cluster.captured, "object": found})
            if self.columns:
                printed = cluster.read_columns(self.object, found["metadata"]["name"])
                for name, text in self.columns.items():
                    if printed.get(name) != text:
                        yield f"column {name} is {printed.get(name, 'not there')!r}"

        return evaluate_one_object(cluster, self.object, "object", find_problems)

    def lint(self, lint: LintContext) -> None:
        lint.expects_selection(("object",), self.object)
        lint.check_fields(("match",), self.match, self.object)
        lint.check_condition(("cel",), _as_tuple(self.cel), "object", self.object)

    def list_scheduled_pods(self) -> Iterable[tuple[str, int]]:
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
        cel = " and ".join(_as_tuple(self.cel))
        return number + self.objects.describe() + (f" with {cel}" if cel else "")

    def evaluate(self, cluster: Cluster) -> Evaluation:
        description = self.objects.describe()
        objects = cluster.find(self.objects)
        observed: dict[str, Any] = {
            "objects": cluster.make_canonical(description),
            "found": len(objects),
        }
        problems = []
        if self.count is not None and len(objects) != self.count:
            names = ", ".join(obj["metadata"]["name"] for obj in objects)
            problems.append(f"{len(objects)} found" + (f" ({names})" if names else ""))
        problems += explain_unmet(_as_tuple(self.cel), {**cluster.captured, "objects": objects})
        observed["fits"] = not problems
        return Evaluation(
            not problems, f"{description}: " + ("; ".join(problems) or "as described"), observed
        )

    def lint(self, lint: LintContext) -> None:
        lint.expects_selection(("objects",), self.objects)
        lint.check_condition(("cel",), _as_tuple(self.cel), "objects", self.objects)


class TogetherExpectation(Timed):
    """Several objects, each of them found once, are to one another as CEL says."""

    together: dict[Annotated[str, Field(pattern=r"^[a-z][A-Za-z0-9]*$")], ObjectSelector] = Field(
        min_length=2, description="name -> an object, which CEL reads by that name"
    )
    cel: Cel | tuple[Cel, ...] = Field(description="CEL over these names that must be true")

    def describe(self) -> str:
        objects = " and ".join(selector.describe() for selector in self.together.values())
        return f"{objects} with {' and '.join(_as_tuple(self.cel))}"

    def evaluate(self, cluster: Cluster) -> Evaluation:
        description = " and ".join(selector.describe() for selector in self.together.values())
        observed: dict[str, Any] = {"together": cluster.make_canonical(description)}
        object_by_name: dict[str, Obj] = {}
        for name, selector in self.together.items():
            objects = cluster.find(selector)
            if len(objects) != 1:
                return Evaluation(False, f"{selector.describe()}: {len(objects)} found", observed)
            object_by_name[name] = objects[0]
        problems = [*explain_unmet(_as_tuple(self.cel), {**cluster.captured, **object_by_name})]
        return Evaluation(
            not problems, "; ".join(problems) or "as described", observed | {"fits": not problems}
        )

    def lint(self, lint: LintContext) -> None:
        for name, selector in self.together.items():
            lint.expects_selection(("together", name), selector)
        lint.check_relation(("cel",), _as_tuple(self.cel), tuple(self.together))


class NoneExpectation(Timed):
    """No such object is there."""

    none: ObjectSelector

    def describe(self) -> str:
        return f"no {self.none.describe()}"

    def evaluate(self, cluster: Cluster) -> Evaluation:
        description = self.none.describe()
        objects = cluster.find(self.none)
        names = ", ".join(_describe_state(obj) for obj in objects)
        observed = {"none": cluster.make_canonical(description), "found": len(objects)}
        return Evaluation(not objects, f"{description}: {names or 'none'}", observed)

    def lint(self, lint: LintContext) -> None:
        lint.expects_selection(("none",), self.none, gone=True)


def _as_tuple(cel: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return CEL that is given as one text or as a list as a tuple."""
    return (cel,) if isinstance(cel, str) else cel


def _describe_state(obj: Obj) -> str:
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
