"""A vendor tries an own driver profile and own scenarios on the reference, without the driver."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.compare.reference import run_on_reference
from conformance.data import scenarios_dir
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome, ScenarioFinished
from conformance.scenario.driver.profile import load_profile
from conformance.scenario.driver.simulated import Allocated
from conformance.scenario.loader import load_scenarios
from conformance.scenario.shape import ShapeNode
from conformance.targets.opening.options import OTHER_PROFILE, TargetOptions
from conformance.targets.opening.target import Opened, open_reference
from conformance.targets.reference import ReferenceOptions, ReferenceTarget
from conformance.targets.reference.device_source import DescribedDevices, SimulatedGpus
from kube.base.errors import UsageError
from kube.simulated import SIMULATED_ATTRIBUTE
from tests.scenario import shipped

PROFILE = """
apiVersion: dra-conformance/v1
kind: DriverProfile
metadata: {name: fpga.acme.example.com}
spec:
  driver: fpga.acme.example.com
  classes:
    fpga:
      name: fpga.acme.example.com
      spec: {selectors: [{cel: {expression: device.driver == "fpga.acme.example.com"}}]}
  attributes: {board: board}
  selectors:
    match: device.attributes["fpga.acme.example.com"].board == "A10"
    noMatch: device.attributes["fpga.acme.example.com"].board == "none"
  config:
    fast: {apiVersion: acme.example.com/v1, kind: FpgaConfig, mode: fast}
  probe: PROBE
  simulated: SIMULATED
"""
BY_ENV = "{env: '^ACME_FPGA_(?P<index>[0-9]+)=(?P<device>.+)$'}"
BY_NODE = "{deviceNodes: '^/dev/fpga(?P<index>[0-9]+)$', deviceName: 'fpga-{index}'}"
DEVICES = """devices: [
    {name: fpga-4, attributes: {board: {string: A10}}, capacity: {memory: {value: 8Gi}}},
    {name: fpga-7, attributes: {board: {string: B20}}, capacity: {memory: {value: 8Gi}}}]"""
SHOWN_BY_ENV = "env: {'ACME_FPGA_{index}': '{device}'}"
SHOWN_BY_NODE = "deviceNodes: ['/dev/fpga{index}']"

SCENARIO = """
apiVersion: dra-conformance/v1
kind: Scenario
metadata: {name: fpga-picked}
spec:
  summary: A claim gets the board that it asks for, and the pod sees it.
  level: extended
  feature: ResourceClaim
  tier: node
  requires: {devices: 1}
  references: [https://acme.example.com/docs]
  steps:
  - apply:
    - apiVersion: resource.k8s.io/v1
      kind: ResourceClaim
      metadata: {name: board}
      spec:
        devices:
          requests:
          - name: fpga
            exactly:
              deviceClassName: "${class.fpga}"
              selectors: [{cel: {expression: '${selector.match}'}}]
    - apiVersion: v1
      kind: Pod
      metadata: {name: user}
      spec:
        restartPolicy: Never
        resourceClaims: [{name: board, resourceClaimName: board}]
        containers:
        - name: ctr
          image: ${image}
          command: ${probe.hold}
          resources: {claims: [{name: board}]}
  - expect:
    - pod: user
      phase: Running
    - devices: {seenBy: [user/ctr], relation: same, count: 1}
    - object: {kind: ResourceClaim, name: board}
      match: {status: {allocation: {devices: {results: [{driver: "${driver}", device: fpga-4}]}}}}
"""


def profile(tmp_path: Path, probe: str, *simulated: str) -> TargetOptions:
    text = PROFILE.replace("PROBE", probe).replace("SIMULATED", "{" + ", ".join(simulated) + "}")
    file = tmp_path / "profile.yaml"
    file.write_text(text, encoding="utf-8")
    return TargetOptions(driver=str(file))


def outcomes(
    tmp_path: Path, options: TargetOptions, published: list[dict[str, Any]] | None = None
) -> list[ScenarioFinished]:
    folder = tmp_path / "scenarios"
    folder.mkdir()
    (folder / "fpga-picked.yaml").write_text(SCENARIO, encoding="utf-8")
    scenarios = load_scenarios([folder])
    with open_reference(options, published) as opened:
        return list(run_suite(scenarios, Setup("t", opened), ()).finished)


@pytest.mark.parametrize(
    ("probe", "shown"),
    [
        (BY_ENV, [SHOWN_BY_ENV]),
        (BY_NODE, [SHOWN_BY_NODE]),
        # Nothing is said of how devices show: the reference has its own way.
        (BY_ENV, []),
    ],
    ids=["env", "device-nodes", "unsaid"],
)
def test_a_vendors_scenario_runs_with_the_devices_of_the_profile(
    tmp_path: Path, probe: str, shown: list[str]
) -> None:
    [finished] = outcomes(tmp_path, profile(tmp_path, probe, DEVICES, *shown))
    assert finished.outcome is Outcome.PASSED, finished.message


def test_that_the_devices_are_only_described_is_said(tmp_path: Path) -> None:
    with open_reference(profile(tmp_path, BY_ENV, DEVICES, SHOWN_BY_ENV)) as opened:
        found = opened.capabilities
    assert found.driver == "fpga.acme.example.com"
    assert found.free.total == 2
    described = "the devices of fpga.acme.example.com (as its profile describes them)"
    assert described in found.simulated
    assert "NVML" not in found.simulated


def published(node: str, *names: str) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-slice", "uid": "u", "resourceVersion": "7"},
        "spec": {
            "driver": "fpga.acme.example.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 3, "resourceSliceCount": 1},
            "devices": [
                {"name": name, "attributes": {"board": {"string": "A10"}}} for name in names
            ],
        },
    }


def test_a_cluster_is_compared_with_the_devices_that_its_driver_has_published(
    tmp_path: Path,
) -> None:
    ours = published("other", "gpu-0")
    ours["spec"]["driver"] = "gpu.nvidia.com"
    slices = [published("worker", "fpga-4"), ours]
    [finished] = outcomes(tmp_path, profile(tmp_path, BY_ENV), slices)
    assert finished.outcome is Outcome.PASSED, finished.message
    with open_reference(profile(tmp_path, BY_ENV), slices) as opened:
        assert opened.capabilities.nodes == ("worker",)
        assert opened.capabilities.free.total == 1


def test_an_attribute_may_be_published_with_the_drivers_domain(tmp_path: Path) -> None:
    published_one = published("worker", "fpga-4")
    driver = published_one["spec"]["driver"]
    published_one["spec"]["devices"][0]["attributes"] = {f"{driver}/board": {"string": "A10"}}
    shown = SHOWN_BY_ENV.replace("}'}", "}', BOARD: '{board}'}")
    [finished] = outcomes(tmp_path, profile(tmp_path, BY_ENV, DEVICES, shown), [published_one])
    assert finished.outcome is Outcome.PASSED, finished.message


def test_what_a_claim_is_configured_with_shows_as_the_profile_says(tmp_path: Path) -> None:
    simulated = "configEnv: {fast: {'ACME_FPGA_{index}_MODE': fast}}"
    probe = (
        BY_ENV.replace("}'", "", 1)[:-1] + ", configEnv: {fast: {'^ACME_FPGA_[0-9]+_MODE$': fast}}}"
    )
    with open_reference(profile(tmp_path, probe, DEVICES, SHOWN_BY_ENV, simulated)) as opened:
        assert opened.profile is not None
        assert set(opened.profile.spec.config) == {"fast"}
        edits = opened.profile.spec.simulated.make_edits(Allocated({"name": "fpga-4"}), ["fast"])
        assert edits.environment["ACME_FPGA_4_MODE"] == "fast"
    # Without it the reference cannot show what the driver would: the scenario is skipped.
    with open_reference(profile(tmp_path, probe, DEVICES, SHOWN_BY_ENV)) as opened:
        assert opened.profile is not None
        assert opened.profile.spec.config == {}


@pytest.mark.parametrize(
    ("probe", "simulated", "says"),
    [
        (BY_ENV, [], r"spec.simulated.devices"),
        (BY_ENV, ["devices: [{name: a, atributes: {}}]"], r"\[0\].atributes: a device has no such"),
        (BY_ENV, ["devices: [{name: 7}]"], r"\[0\].name: 7 is not of the type"),
        (BY_ENV, ["devices: [{name: A_B}]"], r"spec.devices\[0\].name: Invalid value: \"A_B\""),
        (BY_ENV, [DEVICES, SHOWN_BY_NODE], r"probe: reads no device from the environment"),
        (BY_NODE, [DEVICES, "deviceNodes: ['/dev/fpga1']"], r"probe: reads \['fpga-1'\] from"),
    ],
    ids=["none", "unknown-field", "wrong-type", "name", "not-probed", "wrong-device"],
)
def test_a_description_that_cannot_be_used_is_refused(
    tmp_path: Path, probe: str, simulated: list[str], says: str
) -> None:
    options = profile(tmp_path, probe, *simulated)
    with pytest.raises(UsageError, match=says), open_reference(options):
        pass


def test_simulated_gpus_do_nothing_for_another_driver(tmp_path: Path) -> None:
    options = profile(tmp_path, BY_ENV, DEVICES)
    options = TargetOptions(driver=options.driver, simulate="b200x8")
    with (
        pytest.raises(UsageError, match="--simulate is for our own driver"),
        open_reference(options),
    ):
        pass


def test_a_cluster_with_another_driver_is_compared_with_the_reference(tmp_path: Path) -> None:
    """`run --compare` with a vendor's profile and scenarios; a reference stands for the cluster."""
    folder = tmp_path / "scenarios"
    folder.mkdir()
    (folder / "fpga-picked.yaml").write_text(SCENARIO, encoding="utf-8")
    scenarios = load_scenarios([folder])
    profile(tmp_path, BY_ENV, DEVICES)
    with_devices = load_profile(str(tmp_path / "profile.yaml"), tmp_path)
    nodes = (ShapeNode(name="worker-a"), ShapeNode(name="worker-b"))
    cluster = ReferenceTarget(ReferenceOptions(nodes=nodes, devices=DescribedDevices(with_devices)))
    options = replace(profile(tmp_path, BY_ENV), target="cluster", cluster="kubeconfig")
    opened = Opened(cluster, cluster.capabilities(), options.profile(), "image", options)
    with cluster:
        [finished] = run_on_reference(scenarios, opened, "t")
    assert finished.outcome is Outcome.PASSED, finished.message


CLUSTERS = """
apiVersion: dra-conformance/v1
kind: Scenario
metadata: {name: what-the-cluster-has}
spec:
  summary: The nodes, one of them without GPUs, and the GPUs are the cluster's.
  level: extended
  feature: ResourceClaim
  tier: node
  requires: {nodes: 2, devices: 1}
  references: [https://kep.k8s.io/4381]
  steps:
  - expect:
    - {objects: {kind: Node}, cel: "objects.map(n, n.metadata.name) == ['bare', 'worker']"}
    - {objects: {kind: Node}, cel: "objects.all(n, n.metadata.labels['zone'] == 'far')"}
    - objects: {kind: ResourceSlice}
      cel: "objects.map(s, s.spec.devices.map(d, d.name)) == [['gpu-7']]"
"""


IN_USE = (
    "needs 1 device, 0 available: what it publishes is in use, tainted, of an incomplete pool or"
    " not of the class"
)


@pytest.mark.parametrize(
    ("driver", "simulated", "held", "outcome", "why"),
    [
        ("gpu.nvidia.com", True, (), Outcome.PASSED, ""),
        ("gpu.nvidia.com", True, ("gpu-7",), Outcome.SKIPPED, IN_USE),
        ("nvml-dra-driver", False, (), Outcome.PASSED, ""),
        ("nvml-dra-driver", True, (), Outcome.SKIPPED, "needs 2 nodes with a kubelet, 1 available"),
    ],
    ids=["free", "in-use", "ours-on-real-gpus", "ours"],
)
def test_beside_a_cluster_it_has_that_ones_gpus_unless_our_driver_simulates_them(
    tmp_path: Path, driver: str, simulated: bool, held: tuple[str, ...], outcome: Outcome, why: str
) -> None:
    (tmp_path / "what-the-cluster-has.yaml").write_text(CLUSTERS, encoding="utf-8")
    attributes: dict[str, Any] = {
        "type": {"string": "gpu"},
        "cudaComputeCapability": {"version": "9.0.0"},
        SIMULATED_ATTRIBUTE: {"bool": simulated},
    }
    gpu = published("worker", "gpu-7")
    gpu["spec"]["driver"] = "gpu.nvidia.com"
    gpu["spec"]["devices"][0]["attributes"] = attributes
    nodes = (
        ShapeNode(name="worker", labels={"zone": "far"}, held=held),
        ShapeNode(name="bare", labels={"zone": "far"}),
    )
    options = TargetOptions(target="cluster", cluster="kubeconfig", driver=driver)
    source = DescribedDevices(options.profile(), [gpu])
    with ReferenceTarget(ReferenceOptions(nodes=nodes, devices=source)) as cluster:
        opened = Opened.of(cluster, options.profile(), "image", options)
        [finished] = run_on_reference(load_scenarios([tmp_path]), opened, "t")
    assert (finished.outcome, why in finished.message) == (outcome, True), finished.message


def test_a_cluster_whose_rules_are_not_known_is_told(tmp_path: Path) -> None:
    with ReferenceTarget() as cluster:
        newer = replace(cluster.capabilities(), kubernetes_version="v1.99.0")
        with pytest.raises(UsageError, match=r"'1\.99\.0' is not supported"):
            run_on_reference([], Opened(cluster, newer, None, "image", TargetOptions()), "t")


def test_scenarios_of_drivers_pass_with_upstreams_example_driver_as_it_is_described() -> None:
    # The allocation tier has devices of its own and nothing of the driver.
    every = shipped.on_reference()
    scenarios = [item for item in every if item.scenario.spec.tier != "allocation"]
    names = (
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "DRADerivedAttributes",
        "DRADeviceCompatibilityGroups",
        "DRAOptionalNodeOperations",
        "GenericWorkload",
        "DRAWorkloadResourceClaims",
    )
    gates = dict.fromkeys(names, True)
    options = TargetOptions(
        driver="gpu.example.com", other_driver=OTHER_PROFILE, feature_gates=gates
    )
    with open_reference(options) as opened:
        found = run_suite(scenarios, Setup("t", opened), ()).finished
    others = {
        item.scenario.id: item.message for item in found if item.outcome is not Outcome.PASSED
    }
    profile = "driver profile gpu.example.com"
    hardware = {name: why for name, why in others.items() if "/hardware-" in name}
    assert len(hardware) == 3
    assert all(why.startswith(f"{profile} has no command") for why in hardware.values())
    reasons = {why for name, why in others.items() if name not in hardware}
    assert {why.removeprefix(f"{profile} ") for why in reasons} == {
        "has no stimulus that makes a device Unhealthy",
        "has no config refused",
        "does not define how containers show claims (probe.claimEnv)",
        "does not declare device files in containers (probe.deviceNodes)",
        "does not declare the driver trait deviceMetadata",
        "does not declare the driver trait explainsHealth",
        "does not declare the driver trait refusesDevicesInUse",
        "does not declare the driver trait taintsUnhealthyDevices",
        (
            "not supported by this target: shared-devices: the device that can be asked for alone"
            " has no two free shares"
        ),
        (
            "not supported by this target: partitions: no two free devices of a node draw on one"
            " set of counters"
        ),
    }


def test_a_described_driver_does_what_its_profile_says_that_it_does(tmp_path: Path) -> None:
    """Else nothing could be compared with it: the reference itself would fail."""
    traits = "traits: [cdiPerClaim, nodeLocal"
    profile = (shipped.ROOT / "drivers" / "gpu.example.com.yaml").read_text(encoding="utf-8")
    file = tmp_path / "profile.yaml"
    file.write_text(profile.replace(traits, f"{traits}, refusesDevicesInUse"), encoding="utf-8")
    asked = [one for one in shipped.shipped() if one.id.endswith("/device-in-use-is-refused")]
    with open_reference(TargetOptions(driver=str(file))) as opened:
        found = run_suite(asked, Setup("t", opened), ()).finished
    assert [(one.outcome, one.message) for one in found] == [(Outcome.PASSED, "")]


def test_shares_of_a_cluster_whose_driver_names_them_have_names_on_the_reference(
    tmp_path: Path,
) -> None:
    own = (scenarios_dir() / "drivers/nvml-dra-driver.yaml").read_text()
    profile_file = tmp_path / "profile.yaml"
    profile_file.write_text(own.replace("{ownDriver: true}", "{}"), encoding="utf-8")
    nodes = (ShapeNode(name="worker-a", shares=2),)
    gpus = SimulatedGpus("t4x4", "gpu.nvidia.com")
    cluster = ReferenceTarget(ReferenceOptions(nodes=nodes, devices=gpus))
    options = TargetOptions(driver=str(profile_file), target="cluster", cluster="kubeconfig")
    opened = Opened(cluster, cluster.capabilities(), options.profile(), "image", options)
    [item] = [one for one in shipped.shipped() if one.id.endswith("/shares-reach-containers")]
    with cluster:
        [finished] = run_on_reference([item], opened, "t")
    assert finished.outcome is Outcome.PASSED, finished.message
