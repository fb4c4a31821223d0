"""On a real local cluster: a killed run, an interrupted one, another driver, pytest with xdist."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.seam.scope import Target
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import find_cluster, open_cluster_target
from tests.localkube.pool import Shared
from tests.programs import ended

pytestmark = pytest.mark.needs_root

ROOT = Path(__file__).resolve().parents[2]
JOB = "core/job-separate-and-shared-claims"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "conformance", *arguments]


def call(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return ended(command(*arguments), cwd=cwd, timeout=300)


@pytest.fixture
def target(two_nodes: Shared) -> Iterator[Target]:
    options = TargetOptions(target="cluster", cluster="local", name=two_nodes.name)
    access = find_cluster(options)
    assert access is not None
    with open_cluster_target(access, options, only_read=True) as found:
        yield found


@pytest.fixture
def where(two_nodes: Shared) -> list[str]:
    """Options that name the shared cluster."""
    return ["--cluster", "local", "--name", two_nodes.name]


def started(tmp_path: Path, target: Target, where: list[str], run_id: str) -> subprocess.Popen[str]:
    """A run of the longest scenario, when its Job has pods."""
    run = command("run", "--target", "cluster", *where, "-k", JOB, "--run-id", run_id)
    process = subprocess.Popen(
        # A CI system may have started all of this with SIGINT ignored, which is inherited.
        ["env", "--default-signal=INT", *run],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    end = time.monotonic() + 180
    while time.monotonic() < end:
        if any(ref.kind == "Job" for ref in target.owned(run_id)):
            return process
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.2)
    process.kill()
    raise AssertionError("the run made no Job within 180 s")


def test_what_a_killed_run_left_is_removed_by_cleanup(
    tmp_path: Path, target: Target, where: list[str]
) -> None:
    process = started(tmp_path, target, where, "killed")
    process.kill()
    process.communicate()
    assert target.owned("killed")
    done = call("cleanup", *where, "--run", "another", cwd=tmp_path)
    assert "0 found, 0 left" in done.stdout
    assert target.owned("killed"), "cleanup of another run touched this one"
    done = call("cleanup", *where, "--run", "killed", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert target.owned("killed") == []


def test_a_run_that_is_stopped_cleans_up_and_reports_what_had_run(
    tmp_path: Path, target: Target, where: list[str]
) -> None:
    """Which signals stop a run is asked of the reference, in tests/cli/test_endings.py."""
    process = started(tmp_path, target, where, "stopped")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 3, output
    assert "lost" in output
    assert "Traceback" not in output
    assert {ref.kind for ref in target.owned("stopped")} <= {"Namespace"}
    end = time.monotonic() + 120
    while target.owned("stopped") and time.monotonic() < end:
        time.sleep(0.5)
    assert target.owned("stopped") == []
    assert (tmp_path / "dra-conformance-results/junit.xml").is_file()


def test_pytest_runs_scenarios_on_a_cluster_with_xdist(tmp_path: Path, two_nodes: Shared) -> None:
    core = ROOT / "scenarios" / "core"
    files = sorted((*core.glob("isolation-*.yaml"), *core.glob("exact-count-*.yaml")))
    done = ended(
        [
            *(sys.executable, "-m", "pytest", *map(str, files), "-n", "2", "-q"),
            *("--dra-target", "cluster", "--dra-cluster", "local", "--dra-name", two_nodes.name),
            *("-p", "no:cacheprovider"),
        ],
        cwd=tmp_path,
        timeout=300,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        | {"TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(files)} passed" in done.stdout
    assert list(tmp_path.glob(f"dra-conformance-{os.getuid()}-*")) == [], "a lock file is left"


REFUSED = """
apiVersion: dra-conformance/v1
kind: Scenario
metadata: {name: refused-by-the-driver}
spec:
  summary: The driver refuses to prepare a claim, though the pod is expected to run.
  level: core
  feature: ResourceClaim
  tier: node
  requires: {devices: 1}
  references: [https://kep.k8s.io/4381]
  steps:
  - apply:
    - apiVersion: resource.k8s.io/v1
      kind: ResourceClaim
      metadata: {name: odd}
      spec:
        devices:
          requests: [{name: gpu, exactly: {deviceClassName: "${class.gpu}"}}]
          config:
          - opaque:
              driver: ${driver}
              parameters: {apiVersion: resource.nvidia.com/v1beta1, kind: GpuConfig, sharing: {}}
    - apiVersion: v1
      kind: Pod
      metadata: {name: pod0}
      spec:
        containers:
        - name: ctr0
          image: ${image}
          command: ${probe.hold}
          resources: {claims: [{name: gpu}]}
        resourceClaims: [{name: gpu, resourceClaimName: odd}]
  - expect:
    - {pod: pod0, phase: Running}
"""


@pytest.mark.parametrize("target", ["reference", "cluster"])
def test_a_claim_that_the_driver_refuses_costs_seconds_and_is_explained(
    tmp_path: Path, where: list[str], target: str
) -> None:
    (tmp_path / "refused-by-the-driver.yaml").write_text(REFUSED)
    options = ("--target", target, *(where if target == "cluster" else ()))
    done = call("run", *options, "-o", "out", "refused-by-the-driver.yaml", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "NodePrepareResources failed for ResourceClaim odd: " in said
    assert "sharing.strategy: Field required" in said
    given_up = re.search(r"given up after (\d+) s, for that is the driver's answer", said)
    assert given_up, said
    assert int(given_up[1]) <= 90


HARD_CODED = """\
#!/bin/sh
# A driver that knows the usual places only, and is an NRI plugin.
set -e
cat /proc/sys/kernel/random/boot_id >>boots
{python} -c 'import socket; socket.socket(socket.AF_UNIX).connect("/var/run/nri/nri.sock")'
test "$KUBELET_PLUGINS_DIRECTORY_PATH" -ef /var/lib/kubelet/plugins
test "$CDI_ROOT" -ef /var/run/cdi
export KUBELET_REGISTRAR_DIRECTORY_PATH=/var/lib/kubelet/plugins_registry
export KUBELET_PLUGINS_DIRECTORY_PATH=/var/lib/kubelet/plugins CDI_ROOT=/etc/cdi
exec {python} -m nvml_driver run --driver-name gpu.other.example --simulate t4x4 \\
    --device-root "$PWD/dev" --state-dir "$DRA_CONFORMANCE_DRIVER_DIRECTORY/state"
"""


def test_a_driver_with_the_usual_places_in_its_code_is_started_tested_and_stopped(
    tmp_path: Path,
) -> None:
    profile = (ROOT / "scenarios/drivers/nvml-dra-driver.yaml").read_text()
    (tmp_path / "other.yaml").write_text(profile.replace("gpu.nvidia.com", "gpu.other.example"))
    (tmp_path / "start").write_text(HARD_CODED.format(python=sys.executable))
    (tmp_path / "start").chmod(0o755)
    done = call(
        *("run", "--target", "cluster", "--cluster", "local", "--name", "clitest2"),
        *("--nodes", "1", "--compare"),
        *("--driver", "other.yaml", "--driver-command", "./start"),
        *("-k", "core/generated-claim-containers-share-device", "-k", "*/reboot-prepares-again"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "driver gpu.other.example" in " ".join(done.stdout.split())
    assert "identical" in done.stdout
    assert "2 passed" in done.stdout
    before, after = (tmp_path / "boots").read_text().split()
    assert before != after
    running = ended(["pgrep", "-f", f"device-root {tmp_path}/dev"])
    assert running.stdout == ""
