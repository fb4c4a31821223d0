"""Rules about the other fields of a result: copied fields, configuration, node selector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reference_allocator.api import ResourceClaim
from reference_allocator.checks.case import Case, DeviceResult, Violation, named_requests


def fields_are_copied(case: Case) -> Iterator[Violation]:
    """Results repeat the fields of requests and devices as they are there."""
    for item in case.device_results:
        if item.spec is None or item.published is None:
            continue
        device, features = item.published.device, case.features
        bound = features.device_binding_and_status
        expected: dict[str, Any] = {
            "adminAccess": bool(item.spec.admin_access),
            "tolerations": []
            if case.rules.leaves_out_tolerations
            else [toleration.to_dict() for toleration in item.spec.tolerations],
            "bindingConditions": list(device.binding_conditions or ()) if bound else [],
            "bindingFailureConditions": list(device.binding_failure_conditions) if bound else [],
            "skipNodeOperations": list(item.published.slice.skip_node_operations),
        }
        for name, value in expected.items():
            actual = item.raw.get(name) or type(value)()
            if actual != value:
                rule = "admin-access" if name == "adminAccess" else "result-fields"
                yield item.make_violation(rule, f"{name} is {actual!r}, should be {value!r}")


def config_is_right(case: Case) -> Iterator[Violation]:
    """The configurations are those of the chosen classes, then of the claim, for their requests."""
    for index, claim in enumerate(case.claims[: len(case.allocations)]):
        devices = case.allocations[index].get("devices") or {}
        actual = [_without_empty(item) for item in devices.get("config") or ()]
        expected = [
            _without_empty(item)
            for item in _expected_config(case, claim, case.results_of_claim(index))
        ]
        if actual != expected:
            problem = f"config is {actual!r}, should be {expected!r}"
            yield Violation("config", claim.ref, message=problem)


def _without_empty(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if value not in (None, [])}


def _expected_config(
    case: Case, claim: ResourceClaim, device_results: list[DeviceResult]
) -> Iterator[dict[str, Any]]:
    chosen = _chosen_names(claim, device_results)
    specs = dict(named_requests(claim.requests))
    listed_classes: set[str] = set()
    for name in chosen:
        class_name = specs[name].device_class_name
        device_class = case.classes.get(class_name)
        if device_class is None or class_name in listed_classes:
            continue
        listed_classes.add(class_name)
        users = [other for other in chosen if specs[other].device_class_name == class_name]
        for config in device_class.config:
            source = {"source": "FromClass", **config.configuration}
            for_all = len(users) == len(chosen) and not case.rules.config_names_requests
            yield source if for_all else {**source, "requests": users}
    for config in claim.config:
        concerned = [
            name
            for name in chosen
            if name in config.requests or name.split("/")[0] in config.requests
        ]
        plain = {request.name for request in claim.requests} & set(config.requests)
        if config.requests and not concerned and not plain:
            continue
        source = {"source": "FromClaim", **config.configuration}
        older = case.rules.config_names_requests
        if config.requests and (older or len(concerned) < len(chosen)):
            source["requests"] = list(config.requests)
        # A request is named by itself or by what was chosen of it; both are one.
        named = {name.split("/")[0] for name in concerned} | plain
        yield from [source] * (len(named) if older and config.requests else 1)


def _chosen_names(claim: ResourceClaim, device_results: list[DeviceResult]) -> list[str]:
    """Return for each request the name that its results use."""
    used = [item.result.request for item in device_results]
    names: list[str] = []
    for request in claim.requests:
        if not request.first_available:
            names.append(request.name)
            continue
        alternatives = [f"{request.name}/{item.name}" for item in request.first_available]
        # An alternative that wants no device leaves no trace; the first of those is it.
        empty = [
            f"{request.name}/{item.name}" for item in request.first_available if item.count < 1
        ]
        names.append(
            next((name for name in alternatives if name in used), (empty or alternatives)[0])
        )
    return names


def node_selector_is_right(case: Case) -> Iterator[Violation]:
    """The result is usable exactly where its devices are."""
    for index, claim in enumerate(case.claims[: len(case.allocations)]):
        device_results = case.results_of_claim(index)
        if any(item.published is None for item in device_results):
            continue  # where an unknown device can be used is not known
        actual = _read_terms(case.allocations[index].get("nodeSelector"))
        expected = _expected_terms(case, device_results)
        if actual != expected:
            problem = (
                f"nodeSelector selects {_show_terms(actual)}, should select {_show_terms(expected)}"
            )
            yield Violation("node-selector", claim.ref, message=problem)


_Requirement = tuple[str, str, str, frozenset[str]]
_Terms = list[frozenset[_Requirement]]


def _expected_terms(case: Case, device_results: list[DeviceResult]) -> _Terms:
    requirements: set[_Requirement] = set()
    for item in device_results:
        if item.published is None:
            continue
        device, device_slice = item.published.device, item.published.slice
        per_device = bool(device_slice.per_device_node_selection)
        node_name = device.node_name if per_device else device_slice.node_name
        selector = device.node_selector if per_device else device_slice.node_selector
        if node_name is not None or device.binds_to_node:
            this_node = ("matchFields", "metadata.name", "In", frozenset({case.node.name}))
            return [frozenset({this_node})]
        for term in (selector.terms if selector is not None else ())[:1]:
            for kind, listed in (
                ("matchFields", term.match_fields),
                ("matchExpressions", term.match_expressions),
            ):
                requirements.update(
                    (kind, entry.key, entry.operator, frozenset(entry.values)) for entry in listed
                )
    return [frozenset(requirements)] if requirements else []


def _read_terms(selector: Mapping[str, Any] | None) -> _Terms:
    if not selector:
        return []
    return [
        frozenset(
            (
                kind,
                entry.get("key", ""),
                entry.get("operator", ""),
                frozenset(entry.get("values") or ()),
            )
            for kind in ("matchFields", "matchExpressions")
            for entry in term.get(kind) or ()
        )
        for term in selector.get("nodeSelectorTerms") or ()
    ]


def _show_terms(terms: _Terms) -> str:
    if not terms:
        return "every node"
    return " or ".join(
        ", ".join(
            f"{key} {operator} {sorted(values)}"
            for _, key, operator, values in sorted(term, key=str)
        )
        for term in terms
    )
