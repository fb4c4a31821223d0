"""client-go and kubectl, built from their modules, against a served reference."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conformance import probe
from localkube.gocommand import COMPILE, find_go, make_environment
from tests.kubesim.front.served import served
from tests.programs import ended

pytestmark = [pytest.mark.needs_go, pytest.mark.slow, pytest.mark.everything]

MODULE = Path("ci/api-client")
VERSION = "k8s.io/component-base/version.gitVersion=v1.37.1"
SEEN = """\
version v1.37.1
informers synced: 1 slices
created with count 1
created again: already exists true
created with a wrong name: invalid true
updated from an old version: conflict true
applied: labels map[applied:yes test:client-go]
watch: MODIFIED one
watch: MODIFIED one
watch: DELETED one
page of 2 at most 2
page of 2 at most 2
page of 1 at most 2
left: 0
get of none: not found true
informer: added 6, updated true, deleted 6
"""
OBJECTS = f"""
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: gpu}}
spec:
  selectors: [{{cel: {{expression: "device.driver == 'gpu.nvidia.com'"}}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: one-gpu}}
spec:
  spec:
    devices:
      requests: [{{name: gpu, exactly: {{deviceClassName: gpu}}}}]
---
apiVersion: v1
kind: Pod
metadata: {{name: pod, labels: {{step: "one"}}}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {{name: main, image: "probe:1", command: {json.dumps(list(probe.HOLD))},
     resources: {{claims: [{{name: gpu}}]}}}}
  resourceClaims: [{{name: gpu, resourceClaimTemplateName: one-gpu}}]
"""

Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("programs")
    subprocess.run(
        [find_go(), "build", *COMPILE, f"-ldflags=-X {VERSION}", "-o", output, ".", "./kubectl"],
        cwd=MODULE,
        env=make_environment(),
        check=True,
    )
    return output


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with served(tmp_path_factory.mktemp("state")) as reference:
        yield reference.kubeconfig


@pytest.fixture
def kubectl(programs: Path, kubeconfig: Path) -> Kubectl:
    def run(*arguments: str, stdin: str = "", code: int = 0) -> str:
        done = ended(
            [programs / "kubectl", "--kubeconfig", kubeconfig, *arguments], input=stdin, timeout=120
        )
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    return run


def test_client_go_sees_what_a_real_server_shows(programs: Path, kubeconfig: Path) -> None:
    """Informers, conflicts, apply, watches, pages, deletions: as JSON and as protobuf."""
    done = ended([programs / "api-client", kubeconfig, "kube-system"], timeout=120)
    expected = "".join(
        f"{SEEN}done with {kind}\n"
        for kind in ("application/json", "application/vnd.kubernetes.protobuf")
    )
    assert (done.stdout, done.stderr) == (expected, "")


def test_kubectl_applies_watches_describes_and_deletes(kubectl: Kubectl) -> None:
    assert "pod/pod created" in kubectl("apply", "-f", "-", stdin=OBJECTS)
    assert "condition met" in kubectl("wait", "--for=condition=Ready", "pod/pod", "--timeout=60s")
    changed = OBJECTS.replace('"one"', '"two"')
    assert "pod/pod configured" in kubectl("apply", "-f", "-", stdin=changed)
    assert "pod/pod unchanged" in kubectl("apply", "-f", "-", stdin=changed)
    more = ("apply", "--server-side", "--force-conflicts", "-f", "-")
    assert "pod/pod serverside-applied" in kubectl(*more, stdin=changed)
    assert kubectl("get", "po", "-l", "step in (two)", "-o", "name") == "pod/pod\n"
    assert "gpu.nvidia.com" in kubectl("describe", "resourceclaims")
    [titles, *claims] = kubectl("get", "resourceclaims").splitlines()
    assert titles.split() == ["NAME", "STATE", "AGE"]
    assert [one.split()[1] for one in claims] == ["allocated,reserved"]
    assert kubectl("get", "resourceslices").split()[:5] == ["NAME", "NODE", "DRIVER", "POOL", "AGE"]
    assert "Scheduled" in kubectl("describe", "pod", "pod")
    assert "Ready" in kubectl("describe", "node", "reference-node-0")
    assert 'pod "pod" deleted' in kubectl("delete", "pod", "pod", "--timeout=60s")
    assert "NotFound" in kubectl("get", "pod", "pod", code=1)


def test_kubectl_finds_kinds_and_refuses_unknown_fields(kubectl: Kubectl) -> None:
    assert "Server Version: v1.37.1" in kubectl("version")
    names = kubectl("api-resources", "-o", "name").split()
    assert {"pods", "deployments.apps", "resourceclaims.resource.k8s.io"} <= set(names)
    wrong = OBJECTS.partition("---")[0].replace("name: gpu", "name: other") + "spce: {}"
    assert 'unknown field "spce"' in kubectl("apply", "-f", "-", stdin=wrong, code=1)
    assert "other created" in kubectl("apply", "--validate=false", "-f", "-", stdin=wrong)
    assert "deleted" in kubectl("delete", "deviceclass", "other", "--timeout=60s")
