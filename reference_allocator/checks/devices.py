"""Rules about one device and one request: exists, free, selected, supported, not tainted."""

from __future__ import annotations

from collections.abc import Iterator

from reference_allocator.api import PoolId, RequestSpec
from reference_allocator.cel import CelCompileError, CelRuntimeError, compile_selector
from reference_allocator.checks.case import Case, DeviceResult, Published, Violation
from reference_allocator.environment import convert_device
from reference_allocator.rules.taints import tolerates


def device_exists(case: Case) -> Iterator[Violation]:
    """Every device is published for the node in the current, complete state of its pool."""
    for item in case.device_results:
        view = case.views.get(PoolId(item.result.id.driver, item.result.id.pool))
        if view is None:
            yield item.make_violation(
                "device", f"pool {item.result.id.pool} has no devices for node {case.node.name}"
            )
        elif view.problem:
            yield item.make_violation(view.rule, f"pool {view.id}: {view.problem}")
        elif item.published is None:
            yield item.make_violation("device", f"the pool has no such device for {case.node.name}")
        elif not case.can_use(item.published.slice, item.published.device):
            yield item.make_violation("node", f"the device is not for node {case.node.name}")


def device_is_free(case: Case) -> Iterator[Violation]:
    """No device is given away twice, except with admin access or as shares."""
    for index, item in enumerate(case.device_results):
        shared = item.published is not None and case.may_be_shared(item.published)
        if not item.result.admin_access:
            for holder in case.held.get(item.result.id, ()):
                # Shares of a device that cannot be shared any more are in nobody's way: upstream
                # looks at what is in use (deviceInUse), not at how it came about.
                # Since 1.38 it looks at that, too (deviceCapacityInUse).
                if not case.is_share(holder) or (case.rules.shares_keep_device and not shared):
                    yield item.make_violation("in-use", "another claim has the device already")
                    break
        for earlier in case.device_results[:index]:
            if earlier.result.id != item.result.id:
                continue
            same_claim = earlier.claim_index == item.claim_index
            if shared:
                same_request = same_claim and earlier.result.request == item.result.request
                if same_request and not case.rules.repeats_shared_devices:
                    yield item.make_violation("in-use", "one request has two shares of the device")
            elif same_claim:
                yield item.make_violation("in-use", "the claim has the device twice")
            elif not (item.result.admin_access or earlier.result.admin_access):
                yield item.make_violation(
                    "in-use", f"claim {earlier.claim.ref} gets the device, too"
                )


def selectors_hold(case: Case) -> Iterator[Violation]:
    """Every selector of the class and the request is true for the device."""
    for item in case.device_results:
        if item.spec is None or item.published is None:
            continue
        for owner, number, expression in selectors_of(case, item.spec):
            problem = find_selector_problem(case, expression, item.published)
            if problem:
                yield item.make_violation(
                    "selector", f"{owner} selector #{number} {problem}: {expression}"
                )


def selectors_of(case: Case, spec: RequestSpec) -> Iterator[tuple[str, int, str]]:
    """Yield owner, index and source of the selectors that a request's devices have to pass."""
    device_class = case.classes.get(spec.device_class_name)
    if device_class is not None:
        for number, expression in enumerate(device_class.selectors):
            yield f"class {device_class.name}", number, expression or ""
    for number, expression in enumerate(spec.selectors):
        yield "request", number, expression or ""


def find_selector_problem(case: Case, expression: str, published: Published) -> str:
    """Return what is wrong with a selector for a device; an empty text where it is true."""
    # The devices of many nodes may be one object.
    key = expression, published.slice.driver, id(published.device.raw)
    problem = case.selector_problems.get(key)
    if problem is None:
        problem = case.selector_problems[key] = _evaluate_selector(case, expression, published)
    return problem


def _evaluate_selector(case: Case, expression: str, published: Published) -> str:
    try:
        selector = compile_selector(expression, features=case.environment)
        device = convert_device(case.environment, published.slice.driver, published.device.raw)
        matches = selector.matches(device)
    except CelCompileError as error:
        return f"does not compile ({error})"
    except CelRuntimeError as error:
        return f"fails ({error})"
    return "" if matches else "is false"


def is_selected(case: Case, spec: RequestSpec, published: Published) -> bool:
    """Return whether allocationMode All of a request means the device, its capacity aside."""
    if published.device.binding_conditions and not case.features.device_binding_and_status:
        return False
    return all(
        not find_selector_problem(case, expression, published)
        for _, _, expression in selectors_of(case, spec)
    ) and case.can_use(published.slice, published.device)


def taints_are_tolerated(case: Case) -> Iterator[Violation]:
    """NoSchedule and NoExecute taints of the device are tolerated by the request."""
    if not case.features.device_taints:
        return
    for item in case.device_results:
        if item.spec is None or item.published is None:
            continue
        for taint in item.published.device.taints:
            if taint.effect in ("NoSchedule", "NoExecute") and not any(
                tolerates(toleration, taint) for toleration in item.spec.tolerations
            ):
                yield item.make_violation(
                    "taint", f"taint {taint.key}={taint.value}:{taint.effect} is not tolerated"
                )


def device_is_supported(case: Case) -> Iterator[Violation]:
    """The device needs nothing that the features or the node do not have."""
    for item in case.device_results:
        if item.published is not None:
            problem = _find_unsupported(case, item, item.published)
            if problem:
                yield item.make_violation("feature", problem)


def _find_unsupported(case: Case, item: DeviceResult, published: Published) -> str:
    features, device = case.features, published.device
    if device.binding_conditions and not features.device_binding_and_status:
        return "the device has binding conditions, which are disabled"
    if device.consumes_counters and not features.partitionable_devices:
        return "the device consumes counters, which are disabled"
    if published.slice.skip_node_operations:
        if not features.optional_node_operations:
            return "the device skips node operations, which is disabled"
        if "DRAOptionalNodeOperations" not in case.node.declared_features:
            return "the device skips node operations, which the node does not declare"
    if item.result.admin_access and not features.admin_access:
        return "admin access is disabled"
    return ""
