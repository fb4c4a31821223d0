"""The shipped scenarios keep the rules of the format that the model cannot express."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.data import scenarios_dir
from conformance.scenario.lint.manifests import manifest_problems
from conformance.scenario.loader import LoadedScenario, load_scenarios
from conformance.scenario.registry import load_registry

ROOT = scenarios_dir()
FOLDERS = [ROOT / "core", ROOT / "extended"]
SHIPPED = load_scenarios(FOLDERS, ROOT, load_registry(ROOT / "features.yaml"))
CLUSTER_SCOPED = {"DeviceClass", "DeviceTaintRule", "ResourceSlice", "Namespace", "Node"}

every_scenario = pytest.mark.parametrize("loaded", SHIPPED, ids=lambda loaded: loaded.id)


def steps(loaded: LoadedScenario) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = loaded.document.data["spec"]["steps"]
    return found


def applied(loaded: LoadedScenario) -> Iterator[dict[str, Any]]:
    for step in steps(loaded):
        yield from step.get("apply", [])


def rejected(loaded: LoadedScenario) -> Iterator[dict[str, Any]]:
    for step in steps(loaded):
        for expectation in step.get("expect", []):
            if "rejected" in expectation:
                yield expectation["rejected"]["object"]


def pod_specs(loaded: LoadedScenario) -> Iterator[dict[str, Any]]:
    for manifest in applied(loaded):
        if manifest["kind"] == "Pod":
            yield manifest["spec"]
        elif manifest["kind"] == "Job":
            yield manifest["spec"]["template"]["spec"]


@every_scenario
def test_it_says_first_why_the_behaviour_matters(loaded: LoadedScenario) -> None:
    text = loaded.document.file.read_text(encoding="utf-8")
    assert text.startswith("# ")


@every_scenario
def test_its_folder_says_its_level(loaded: LoadedScenario) -> None:
    assert loaded.id.split("/")[0] == loaded.scenario.spec.level


@every_scenario
def test_it_names_a_document_and_an_enhancement(loaded: LoadedScenario) -> None:
    references = loaded.scenario.spec.references
    enhancements = [item for item in references if item.startswith("https://kep.k8s.io/")]
    assert len(enhancements) == 1
    assert any("https://" in item for item in references if item not in enhancements)


@every_scenario
def test_core_needs_nothing_newer_than_the_stable_api(loaded: LoadedScenario) -> None:
    if loaded.scenario.spec.level == "core":
        assert loaded.scenario.spec.requires.kubernetes == ">=1.34"
        assert not loaded.scenario.spec.requires.feature_gates


@every_scenario
def test_its_containers_run_the_given_image_and_a_probe(loaded: LoadedScenario) -> None:
    for spec in pod_specs(loaded):
        for container in spec["containers"]:
            assert container["image"] == "${image}"
            assert container["command"] in ("${probe.hold}", "${probe.exit}")


@every_scenario
def test_its_pods_end_quickly(loaded: LoadedScenario) -> None:
    grace = 0 if loaded.scenario.spec.tier == "allocation" else 1
    for spec in pod_specs(loaded):
        assert spec["terminationGracePeriodSeconds"] == grace


@every_scenario
def test_its_pods_run_on_any_node_that_has_their_devices_and_on_no_hollow_one_without(
    loaded: LoadedScenario,
) -> None:
    for spec in pod_specs(loaded):
        limits = [item.get("resources", {}).get("limits") for item in spec["containers"]]
        bound_to_devices = spec.get("resourceClaims") or any(limits)
        assert spec.get("tolerations", []) == ([{"operator": "Exists"}] if bound_to_devices else [])


@every_scenario
def test_names_outside_its_namespace_belong_to_the_run(loaded: LoadedScenario) -> None:
    for manifest in applied(loaded):
        if manifest["kind"] in CLUSTER_SCOPED:
            assert manifest["metadata"]["name"].startswith(("${name.", "${class."))
        namespace = manifest["metadata"].get("namespace", "${name.x}")
        assert namespace.startswith("${name.")


@every_scenario
def test_without_a_kubelet_nothing_is_expected_to_run(loaded: LoadedScenario) -> None:
    if loaded.scenario.spec.tier != "allocation":
        return
    for step in steps(loaded):
        for expectation in step.get("expect", []):
            assert expectation.get("phase", "Pending") == "Pending"
            assert not {"devices", "environment", "cdi"} & set(expectation)


@every_scenario
def test_devices_that_it_uses_are_declared(loaded: LoadedScenario) -> None:
    spec = loaded.scenario.spec
    uses = any(pod.get("resourceClaims") for pod in pod_specs(loaded))
    if spec.tier == "node" and uses:
        assert spec.requires.devices > 0
    if spec.tier == "allocation":
        assert spec.requires.devices == 0


@every_scenario
def test_what_it_applies_passes_the_manifest_check(loaded: LoadedScenario) -> None:
    found = [item for manifest in applied(loaded) for item in manifest_problems(manifest)]
    assert [item for item in found if item.severity == "error"] == []


@every_scenario
def test_what_the_api_server_must_refuse_is_found_without_a_cluster(
    loaded: LoadedScenario,
) -> None:
    if loaded.scenario.spec.feature == "AdminAccess":
        return  # depends on a label of the namespace
    for manifest in rejected(loaded):
        assert list(manifest_problems(manifest))
