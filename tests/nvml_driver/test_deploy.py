"""The manifests in ci/deploy. What a real API server makes of them: test_real_policies.py."""

from __future__ import annotations

import re
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.engine.run.steps import hollow_node
from nvml_driver.config.kinds import decode_config
from nvml_driver.errors import ConfigError
from reference_allocator.cel import DYN, compile_expression

BASE = Path(__file__).resolve().parents[2] / "ci" / "deploy" / "base"
API = "resource.nvidia.com/v1beta1"
UUID = "GPU-54b063d1-49b7-1dbd-6955-a99b6139260f"


@cache
def documents() -> list[dict[str, Any]]:
    """All objects of the base, through its kustomization."""
    names = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    assert set(names) == {path.name for path in BASE.iterdir()} - {"kustomization.yaml"}
    return [one for name in names for one in yaml.safe_load_all((BASE / name).read_text())]


def find(kind: str, name: str) -> dict[str, Any]:
    [found] = [d for d in documents() if d["kind"] == kind and d["metadata"]["name"] == name]
    return found


def gpu(**sharing: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": "GpuConfig", "sharing": sharing}


def mig(**sharing: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": "MigDeviceConfig", "sharing": sharing}


def vfio(**iommu: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": "VfioDeviceConfig", "iommu": iommu}


def mps(**config: Any) -> dict[str, Any]:
    return gpu(strategy="MPS", mpsConfig=config)


CASES: list[tuple[dict[str, Any], str]] = [
    ({"apiVersion": API, "kind": "GpuConfig"}, ""),
    ({"apiVersion": API, "kind": "MigDeviceConfig"}, ""),
    ({"apiVersion": API, "kind": "VfioDeviceConfig"}, ""),
    (gpu(strategy="TimeSlicing"), ""),
    *(
        (gpu(strategy="TimeSlicing", timeSlicingConfig={"interval": i}), "")
        for i in ("Default", "Short", "Medium", "Long")
    ),
    (gpu(strategy="TimeSlicing", timeSlicingConfig={}), ""),
    (mps(), ""),
    (mps(defaultActiveThreadPercentage=0), ""),
    (mps(defaultActiveThreadPercentage=100), ""),
    (mps(defaultPinnedDeviceMemoryLimit="10Gi", multiUser=False), ""),
    (mps(defaultPerDevicePinnedMemoryLimit={"0": "1.5Gi", UUID: "100M"}), ""),
    (mig(strategy="MPS", mpsConfig={"multiUser": True}), ""),
    (mig(strategy="TimeSlicing"), ""),
    (vfio(), ""),
    (vfio(backendPolicy="PreferIommuFD", enableAPIDevice=False), ""),
    ({}, "must be a GpuConfig"),
    ({"apiVersion": "v1", "kind": "GpuConfig"}, "must be a GpuConfig"),
    ({"apiVersion": API, "kind": "Gpu"}, "must be a GpuConfig"),
    ({"apiVersion": API, "kind": "GpuConfig", "Sharing": {}}, "unknown field"),
    ({**gpu(strategy="MPS"), "iommu": {}}, "unknown field"),
    ({**vfio(), "sharing": {"strategy": "MPS"}}, "unknown field"),
    (gpu(), "strategy must be"),
    (gpu(strategy="Chaos"), "strategy must be"),
    (gpu(strategy="TimeSlicing", timeSlicingConfg={}), "sharing has an unknown field"),
    (gpu(strategy="TimeSlicing", mpsConfig={}), "mpsConfig is not allowed"),
    (gpu(strategy="MPS", timeSlicingConfig={}), "timeSlicingConfig is not allowed"),
    (gpu(strategy="TimeSlicing", timeSlicingConfig={"interval": "Tiny"}), "unknown time-slice"),
    (gpu(strategy="TimeSlicing", timeSlicingConfig={"intervall": "Long"}), "an unknown field"),
    (mps(defaultActiveThreadPercentage=101), "from 0 to 100"),
    (mps(defaultActiveThreadPercentage=-1), "from 0 to 100"),
    (mps(defaultActiveThreadPercentage="50"), "from 0 to 100"),
    (mps(multiUser="yes"), "true or false"),
    (mps(threads=5), "mpsConfig has an unknown field"),
    (mps(defaultPinnedDeviceMemoryLimit="lots"), "must be a quantity"),
    (mps(defaultPinnedDeviceMemoryLimit=10), "must be a quantity"),
    (mps(defaultPerDevicePinnedMemoryLimit={"x": "1Gi"}), "indices or UUIDs"),
    (mps(defaultPerDevicePinnedMemoryLimit={"0": "much"}), "indices or UUIDs"),
    (mig(strategy="TimeSlicing", timeSlicingConfig={}), "sharing has an unknown field"),
    (mig(strategy="TimeSlicing", mpsConfig={}), "mpsConfig is not allowed"),
    (vfio(backendPolicy="Whatever"), "backendPolicy must be"),
    (vfio(enableApiDevice=True), "iommu has an unknown field"),
    (vfio(enableAPIDevice="yes"), "enableAPIDevice must be"),
]


@pytest.mark.parametrize(("parameters", "message"), CASES)
def test_the_driver_refuses_what_its_policy_refuses(
    parameters: dict[str, Any], message: str
) -> None:
    """What the policy says of the same: ``tests/cli/test_real_policies.py``."""
    with pytest.raises(ConfigError) if message else nullcontext():
        decode_config(parameters)


def test_the_policy_is_asked_in_all_api_versions() -> None:
    [rule] = find("ValidatingAdmissionPolicy", "nvml-dra-driver-configs")["spec"][
        "matchConstraints"
    ]["resourceRules"]
    assert rule["apiVersions"] == ["v1", "v1beta2", "v1beta1"]
    assert rule["resources"] == ["resourceclaims", "resourceclaimtemplates"]
    # The API holds the spec fixed; a claim older than the policy must lose its finalizer some day.
    assert rule["operations"] == ["CREATE"]


def test_the_slice_policy_concerns_the_drivers_account() -> None:
    policy = find("ValidatingAdmissionPolicy", "nvml-dra-driver-slices")
    [condition] = policy["spec"]["matchConditions"]
    account = find("ServiceAccount", "nvml-dra-driver")["metadata"]
    user = f"system:serviceaccount:{account['namespace']}:{account['name']}"
    program = compile_expression(condition["expression"], {"request": DYN})
    assert program.evaluate({"request": {"userInfo": {"username": user}}}) is True


def test_neither_daemon_set_wants_a_pod_on_a_node_without_a_kubelet() -> None:
    """It tolerates every taint, so its node selector alone keeps it from hollow nodes."""
    overlay = yaml.safe_load((BASE.parent / "simulated/kustomization.yaml").read_text())
    [patch] = overlay["patches"]
    paths = {one["path"]: one for one in yaml.safe_load(patch["patch"])}
    changed = paths["/spec/template/spec/nodeSelector"]
    spec = find("DaemonSet", "nvml-dra-driver")["spec"]["template"]["spec"]
    labels = hollow_node("dra-a", "a")["metadata"]["labels"]
    for selector in (spec["nodeSelector"], changed["value"]):
        assert not selector.items() <= labels.items()


@pytest.mark.parametrize(
    "manifest",
    sorted(BASE.parent.rglob("*.yaml")),
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_each_host_path_is_explained_at_its_volume(manifest: Path) -> None:
    """Each is a way from the container to its node."""
    lines = manifest.read_text().splitlines()
    places = [number for number, line in enumerate(lines) if re.match(r"[\s-]*hostPath:", line)]
    volumes = [
        max(n for n in range(place + 1) if lines[n].lstrip().startswith("- ")) for place in places
    ]
    assert [lines[n] for n in volumes if not lines[n - 1].lstrip().startswith("# ")] == []
    assert len(volumes) == sum(line.count("hostPath:") for line in lines)
    assert bool(volumes) is (manifest.name == "daemonset.yaml")


def test_only_what_the_driver_writes_is_mounted_writable() -> None:
    spec = find("DaemonSet", "nvml-dra-driver")["spec"]["template"]["spec"]
    [container] = spec["containers"]
    writable = {one["name"] for one in container["volumeMounts"] if not one.get("readOnly")}
    assert writable == {"plugins-registry", "plugins", "cdi", "dev"}


def test_every_policy_is_bound_and_denies() -> None:
    policies = {d["metadata"]["name"] for d in documents() if d["kind"] == POLICY}
    bindings = {
        d["spec"]["policyName"]: d["spec"]["validationActions"]
        for d in documents()
        if d["kind"] == f"{POLICY}Binding"
    }
    assert bindings == {name: ["Deny"] for name in policies}


POLICY = "ValidatingAdmissionPolicy"


def test_the_rights_are_those_that_the_client_uses_and_no_more() -> None:
    rules = find("ClusterRole", "nvml-dra-driver")["rules"]
    found = {(rule["resources"][0], verb) for rule in rules for verb in rule["verbs"]}
    assert found == {
        ("resourceslices", "list"),
        ("resourceslices", "watch"),
        ("resourceslices", "create"),
        ("resourceslices", "update"),
        ("resourceslices", "delete"),
        ("resourceclaims", "get"),
        ("nodes", "get"),
    }
    assert all(len(rule["resources"]) == 1 for rule in rules)


def test_the_daemon_set_names_options_that_the_driver_has() -> None:
    from typer.main import get_command

    from nvml_driver.cli import app

    command: Any = get_command(app)
    options = {option.envvar for option in command.commands["run"].params if option.envvar}
    [container] = find("DaemonSet", "nvml-dra-driver")["spec"]["template"]["spec"]["containers"]
    environment = {variable["name"] for variable in container["env"]}
    assert environment <= options, environment - options
    assert "POD_UID" in environment, "a surge update needs two instances side by side"
    missing = {option.name for option in command.commands["run"].params if not option.envvar}
    assert missing <= {"help"}, "every flag has a variable"
