"""Rules about a request and a claim as a whole: names, numbers, alternatives, constraints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reference_allocator.api import Attribute, Constraint, DeviceRequest, RequestSpec
from reference_allocator.api.limits import ALLOCATION_RESULTS_MAX
from reference_allocator.api.semver import SemverError, parse_semver
from reference_allocator.cel import CelCompileError, CelRuntimeError, compile_derived
from reference_allocator.checks.capacity import could_fit
from reference_allocator.checks.case import Case, DeviceResult, Violation
from reference_allocator.checks.devices import is_selected
from reference_allocator.environment import convert_device, derived_environment


def every_claim_has_a_result(case: Case) -> Iterator[Violation]:
    """Each claim has one allocation."""
    if len(case.claims) != len(case.allocations):
        problem = f"{len(case.allocations)} allocations for {len(case.claims)} claims"
        yield Violation("allocation-count", message=problem)


def requests_exist(case: Case) -> Iterator[Violation]:
    """Every result names a request of its claim; an alternative as `request/subrequest`."""
    for item in case.device_results:
        if item.spec is None:
            yield item.make_violation("request", "the claim has no such request")


def requests_are_allowed(case: Case) -> Iterator[Violation]:
    """No request uses a feature that is off, an unknown class or an unknown mode."""
    for claim in case.claims:
        for request in claim.requests:
            for spec in request.first_available or (request.exactly,):
                problem = _find_forbidden(case, request, spec)
                if problem:
                    yield Violation("feature", claim.ref, request.name, "", problem)


def _find_forbidden(case: Case, request: DeviceRequest, spec: RequestSpec | None) -> str:
    features = case.features
    if spec is None:
        return "the request has neither exactly nor firstAvailable"
    if request.first_available and not features.prioritized_list:
        return "firstAvailable is disabled"
    if spec.capacity is not None and not features.consumable_capacity:
        return "capacity requests are disabled"
    if spec.derived_attributes and not features.derived_attributes:
        return "derived attributes are disabled"
    if spec.admin_access is not None and not features.admin_access:
        return "admin access is disabled"
    if spec.device_class_name not in case.classes:
        return f"device class {spec.device_class_name} does not exist"
    if spec.allocation_mode not in ("ExactCount", "All"):
        return f"allocation mode {spec.allocation_mode!r} is not known"
    if any(selector is None for selector in spec.selectors):
        return "a selector is not CEL"
    return ""


def numbers_are_right(case: Case) -> Iterator[Violation]:
    """Each request has exactly the devices it asks for, through one of its alternatives."""
    for index, claim in enumerate(case.claims[: len(case.allocations)]):
        device_results = case.results_of_claim(index)
        if len(device_results) > ALLOCATION_RESULTS_MAX:
            problem = f"{len(device_results)} devices, at most {ALLOCATION_RESULTS_MAX} allowed"
            yield Violation("limit", claim.ref, message=problem)
        for request in claim.requests:
            for problem, rule in _check_number(case, request, device_results):
                yield Violation(rule, claim.ref, request.name, "", problem)


def _check_number(
    case: Case, request: DeviceRequest, device_results: Sequence[DeviceResult]
) -> Iterator[tuple[str, str]]:
    if not request.first_available:
        if request.exactly is not None:
            own_results = [item for item in device_results if item.result.request == request.name]
            yield from _check_devices(case, request.exactly, own_results)
        return
    used = {
        alternative.name: [
            item
            for item in device_results
            if item.result.request == f"{request.name}/{alternative.name}"
        ]
        for alternative in request.first_available
    }
    chosen = [name for name, devices in used.items() if devices]
    if len(chosen) > 1:
        yield f"devices of several alternatives: {', '.join(chosen)}", "alternative"
        return
    problems = [
        list(_check_devices(case, alternative, used[alternative.name]))
        for alternative in request.first_available
        if not chosen or alternative.name == chosen[0]
    ]
    if all(problems):
        yield from problems[0]


def _check_devices(
    case: Case, spec: RequestSpec, device_results: Sequence[DeviceResult]
) -> Iterator[tuple[str, str]]:
    if spec.allocation_mode == "ExactCount":
        if len(device_results) != max(spec.count, 0):
            yield f"{len(device_results)} devices, {spec.count} requested", "count"
        return
    if spec.allocation_mode != "All" or any(item.published is None for item in device_results):
        return  # what all of them were is not known once one is gone
    for view in case.views.values():
        if view.rule in ("pool-incomplete", "pool-invalid"):
            yield f"all devices requested while pool {view.id} is not usable", view.rule
            return
    matching = {
        published.id
        for view in case.views.values()
        for same_name in view.devices.values()
        for published in same_name
        if is_selected(case, spec, published) and could_fit(case, spec, published)
    }
    if not matching:
        yield "all devices requested, and there is none", "all"
        return
    allocated = {item.result.id for item in device_results}
    missing = ", ".join(sorted(str(device) for device in matching - allocated))
    surplus = ", ".join(sorted(str(device) for device in allocated - matching))
    if missing:
        yield f"all devices requested, but these are missing: {missing}", "all"
    if surplus:
        yield f"all devices requested, but these do not match: {surplus}", "all"


def constraints_hold(case: Case) -> Iterator[Violation]:
    """Constraints hold for the devices of the requests that they name."""
    for index, claim in enumerate(case.claims[: len(case.allocations)]):
        for number, constraint in enumerate(claim.constraints):
            concerned = [
                item for item in case.results_of_claim(index) if _concerns(constraint, item)
            ]
            for item, problem in _check_constraint(case, constraint, concerned):
                yield item.make_violation("constraint", f"constraint #{number}: {problem}")


def _concerns(constraint: Constraint, item: DeviceResult) -> bool:
    name = item.result.request
    return (
        not constraint.requests
        or name in constraint.requests
        or name.split("/")[0] in constraint.requests
    )


def _check_constraint(
    case: Case, constraint: Constraint, concerned: Sequence[DeviceResult]
) -> Iterator[tuple[DeviceResult, str]]:
    name = constraint.match_attribute or constraint.distinct_attribute
    if name is None:
        for item in concerned:
            yield item, "neither matchAttribute nor distinctAttribute"
        return
    lists = case.features.list_type_attributes
    values_of_results: list[tuple[DeviceResult, set[tuple[str, object]]]] = []
    for item in concerned:
        if item.published is None or item.spec is None:
            continue
        attribute = attribute_of(case, item, name)
        if attribute is None:
            yield item, f"the device has no attribute {name}"
            continue
        values = _comparable_values(attribute, lists=lists)
        if case.rules.reads_inner_types:
            values = _values_as_versions(values)
            # An empty list is no value of the API, and one of an expression.
            if not values and not (lists and _is_derived(item, name)):
                yield item, f"the value of {name} cannot be compared"
                continue
        # Without lists, a value of another type is let in for the first device only.
        elif not values and (lists or values_of_results):
            yield item, f"the value of {name} has a type that cannot be compared"
            continue
        values_of_results.append((item, values))
    if constraint.match_attribute is not None:
        if len(values_of_results) > 1 and not set.intersection(
            *(values for _, values in values_of_results)
        ):
            yield values_of_results[-1][0], f"the devices do not share a value of {name}"
        return
    for position, (item, values) in enumerate(values_of_results):
        for earlier, other in values_of_results[:position]:
            if values & other:
                yield item, f"same value of {name} as {earlier.result.id}"


def _comparable_values(attribute: Attribute, *, lists: bool) -> set[tuple[str, object]]:
    if attribute.kind is None or (attribute.is_list and not lists):
        return set()
    return {(attribute.kind, value) for value in attribute.values}


def _values_as_versions(values: set[tuple[str, object]]) -> set[tuple[str, object]]:
    """Return the values with versions by precedence; none where a version does not parse."""
    try:
        return {
            (kind, parse_semver(str(value)).precedence if kind == "version" else value)
            for kind, value in values
        }
    except SemverError:
        return set()


def _is_derived(item: DeviceResult, name: str) -> bool:
    assert item.spec is not None
    return any(derived.name == name for derived in item.spec.derived_attributes)


def attribute_of(case: Case, item: DeviceResult, name: str) -> Attribute | None:
    """Return the attribute that a constraint means, of a device that is published for a request.

    An attribute that the request derives hides a published one; it is missing where it has no
    value.
    """
    assert item.published is not None
    assert item.spec is not None
    for derived in reversed(item.spec.derived_attributes):
        if derived.name == name:
            try:
                device = convert_device(
                    case.environment, item.result.id.driver, item.published.device.raw
                )
                environment = derived_environment(case.environment)
                program = compile_derived(derived.expression, features=environment)
                value = program.compute_attribute(device)
            except (CelCompileError, CelRuntimeError):
                return None
            return Attribute.from_dict(value)
    attributes = item.published.device.attributes
    domain, _, bare = name.partition("/")
    if name in attributes:
        return attributes[name]
    return attributes.get(bare) if bare and domain == item.result.id.driver else None
