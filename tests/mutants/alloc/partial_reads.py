"""The allocator looks at a part: a name without its domain, a toleration without its value."""

from __future__ import annotations

from kube.values import Obj
from kubesim.scheduling.listers import Listers
from reference_allocator.api.quantity import parse_quantity
from tests.mutants.alloc.constraints import names
from tests.mutants.alloc.pools import generation, selectors
from tests.mutants.alloc.taints import each
from tests.mutants.alloc.views import View, sees
from tests.mutants.allocator.inputs import changed, devices, reads_all, wanted
from tests.mutants.allocator.pools import pool_of
from tests.mutants.replacing import Defects


def _above_exact_values(view: View) -> None:
    """A request for just one of the valid values gets the next."""
    valid = {
        (name, parse_quantity(str(value)).nanos)
        for item in view.slices
        for device in devices(item)
        for name, capacity in (device.get("capacity") or {}).items()
        for value in (capacity.get("requestPolicy") or {}).get("validValues") or ()
    }
    for claim in view.wanted:
        for one in wanted(claim):
            asked = (one.get("capacity") or {}).get("requests") or {}
            for name, amount in asked.items():
                nanos = parse_quantity(str(amount)).nanos
                if (name, nanos) in valid:
                    asked[name] = str(nanos // 10**9 + 1)


def _in_every_domain(view: View) -> None:
    """An attribute without a domain is found under the name of every one."""
    for name in names(view, "matchAttribute"):
        short = name.rpartition("/")[2]
        for item in view.slices:
            for device in devices(item):
                attributes = device.get("attributes") or {}
                if short in attributes and not name.startswith(f"{item['spec']['driver']}/"):
                    attributes.setdefault(name, attributes[short])


def _whatever_its_value(toleration: Obj) -> None:
    if toleration.get("key") and not toleration.get("value"):
        toleration["operator"] = "Exists"


def _first_slice_decides(slices: list[Obj]) -> list[Obj]:
    """A pool whose first slice is of an older generation than others is not used at all."""
    first: dict[tuple[str, str], int] = {}
    newest: dict[tuple[str, str], int] = {}
    for item in slices:
        pool, number = pool_of(item), generation(item)
        first.setdefault(pool, number)
        newest[pool] = max(number, newest.get(pool, 0))
    return [item for item in slices if first[pool_of(item)] == newest[pool_of(item)]]


def _not_in_needs_the_label(slices: list[Obj]) -> list[Obj]:
    def change(item: Obj) -> None:
        for term in selectors([item]):
            for rule in [*(term.get("matchExpressions") or [])]:
                if rule["operator"] == "NotIn":
                    term["matchExpressions"].append({"key": rule["key"], "operator": "Exists"})

    return changed(slices, change)


DEFECTS: Defects = {
    "exact-valid-values-are-rounded-up": sees(_above_exact_values),
    "attributes-without-domain-are-in-every-one": sees(_in_every_domain),
    "tolerations-without-value-cover-every-one": each(_whatever_its_value),
    "pools-that-begin-with-an-old-slice-are-not-used": reads_all(
        Listers.resource_slices, _first_slice_decides
    ),
    "not-in-needs-the-label": reads_all(Listers.resource_slices, _not_in_needs_the_label),
}
