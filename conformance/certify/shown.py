"""What a run shows of each feature of DRA, and, by its snapshots, of the cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.certify.contradictions import recorded_snapshots
from conformance.certify.model import Devices, FeatureResult, Inventory, Support
from conformance.compare.conclude import excused_scenarios
from conformance.engine.requirements import is_in
from conformance.results.events.result import RunResult
from conformance.results.events.run import RunStarted
from conformance.results.events.scenario import Outcome, PlannedScenario
from conformance.scenario.registry import load_registry
from kube.base.text import cut
from kube.nodes import RUN_LABEL
from reference_allocator.gates import gates_for_version, nearest_minor


def claimed_features(run: RunStarted) -> frozenset[str]:
    """Return the features that the driver profile of a run claims beside the core."""
    spec = (run.driver_profile or {}).get("spec")
    names = spec.get("claims") if isinstance(spec, Mapping) else None
    return frozenset(map(str, names)) if isinstance(names, list | tuple) else frozenset()


def feature_results(
    result: RunResult, catalogue: Sequence[PlannedScenario]
) -> tuple[FeatureResult, ...]:
    """Return each feature of which the suite has a scenario for this Kubernetes, by name.

    A claimed feature (``claims`` of the driver profile) that is not shown to work has failed; one
    that is not claimed and whose scenarios were all skipped is unsupported, which is no failure.
    Nobody is excused from the core.

    ``catalogue``: every scenario that the suite ships; provisional ones count for nothing, nor do
    those whose rule cannot exist for the driver.
    """
    version = result.run.kubernetes_version
    by_feature: dict[str, list[PlannedScenario]] = {}
    nature = excused_scenarios(result)
    for item in catalogue:
        if not item.provisional and is_in(version, item.kubernetes) and item.id not in nature:
            by_feature.setdefault(item.feature, []).append(item)
    outcomes = {
        row.scenario.id: Outcome.FAILED if row.against_rules else row.outcome
        for row in result.scenarios
    }
    claims = claimed_features(result.run)
    return tuple(
        _feature_result(name, by_feature[name], outcomes, name in claims, version)
        for name in sorted(by_feature)
    )


def _feature_result(
    name: str,
    scenarios: Sequence[PlannedScenario],
    outcomes: Mapping[str, Outcome],
    claims: bool,
    version: str,
) -> FeatureResult:
    registered = load_registry().features.get(name)
    gates = gates_for_version(nearest_minor(version))
    gate = (
        gates.get(registered.gate)
        if registered is not None and registered.gate is not None
        else None
    )

    def ended(*wanted: Outcome | None) -> tuple[str, ...]:
        return tuple(sorted(i.id for i in scenarios if outcomes.get(i.id) in wanted))

    passed, failed, skipped = (
        ended(outcome) for outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED)
    )
    missing = ended(None, Outcome.LOST, Outcome.ERROR, Outcome.FLAKY)
    core = {item.id for item in scenarios if item.level == "core"}
    if failed or (claims and skipped):
        support = Support.FAILED
    elif missing or core.intersection(skipped):
        support = Support.NOT_TESTED
    elif passed:
        support = Support.SUPPORTED
    else:
        support = Support.UNSUPPORTED if skipped else Support.NOT_TESTED
    return FeatureResult(
        name=name,
        summary=registered.summary if registered is not None else "",
        kep=registered.kep if registered is not None else "",
        stage=gate.stage if gate is not None else None,
        claimed=claims,
        support=support,
        passed=passed,
        failed=failed,
        known=ended(Outcome.KNOWN),
        skipped=skipped,
        not_tested=missing,
    )


UNKNOWN = "unknown"


def count_inventory(result: RunResult) -> Inventory | None:
    """Count nodes and devices in all snapshots together; None where there is no snapshot.

    A snapshot of another form than the suite's adds nothing: it is reported where it is judged.
    """
    nodes: set[str] = set()
    holding: set[str] = set()
    devices: dict[tuple[str, str], str] = {}
    some = False
    for snapshot in (item for event in result.finished for item in recorded_snapshots(event)):
        some = True
        try:
            names = list(_nodes(snapshot))
            published = list(_devices(result.run, snapshot))
        except (AttributeError, KeyError, TypeError):
            continue
        nodes.update(names)
        for node, pool, device, product in published:
            holding.add(node)
            devices[pool, device] = product
    if not some:
        return None
    counts = Counter(devices.values())
    return Inventory(
        nodes=len(nodes),
        nodes_with_devices=len(holding & nodes),
        devices=tuple(Devices(product=name, count=counts[name]) for name in sorted(counts)),
    )


def _nodes(snapshot: Mapping[str, Any]) -> Iterator[str]:
    for node in snapshot["nodes"]:
        if RUN_LABEL not in (node["metadata"].get("labels") or {}):
            yield str(node["metadata"]["name"])


def _devices(run: RunStarted, snapshot: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield node, pool, name and product of each device of the run's driver."""
    attribute = _product_attribute(run)
    for item in snapshot["slices"]:
        spec = item["spec"]
        if spec["driver"] != run.driver:
            continue
        for device in spec.get("devices") or ():
            # v1beta1 has the attributes one level deeper.
            attributes = (device.get("basic") or device).get("attributes") or {}
            value = attributes.get(attribute) or attributes.get(f"{run.driver}/{attribute}") or {}
            product = cut(str(value.get("string", UNKNOWN)), 100)
            yield str(spec.get("nodeName", "")), str(spec["pool"]["name"]), device["name"], product


def _product_attribute(run: RunStarted) -> str:
    try:
        return str((run.driver_profile or {})["spec"]["attributes"]["model"])
    except (KeyError, TypeError):
        return "productName"
