"""Unmodified clients of others against ``python -m kubesim serve``: ci/clients has their programs.

Go's are built from their pinned modules (`tests.go_programs`), Python's are of PyPI, each release
in a folder of its own below build/clients. docs/clusters.md says what works.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.go_programs import KUBECTL, KUBERNETES, build_programs, build_tests
from tests.kubesim.front.served import serving_module
from tests.programs import ended
from tests.pypi import install_packages

pytestmark = [pytest.mark.needs_clients, pytest.mark.slow, pytest.mark.everything]

CI_CLIENTS = Path("ci/clients")
OBJECTS = CI_CLIENTS / "objects.yaml"

GO_CLIENT_LINES = """\
version v1.37.1
informers synced: 0 slices
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
PYTHON_CLIENT_LINES = """\
version v1.37.1
again: Conflict Conflict Conflict Conflict
watch: the device of gpu is gpu-0
server-side apply: {'applied': 'yes'}
replace of an old version: 409 Conflict
slices: ['gpu-0']
slices left: 0
"""
KR8S_LINES = """\
version v1.37.1
node: node-1
device: gpu-0
watch: True
by label: ['pod']
left: 0
"""
KOPF_LINES = """\
created gpu
allocated gpu: gpu-0
label and finalizer: yes kopf.zalando.org/KopfFinalizerMarker
deleted gpu
event: ['Allocated']
ended
"""
PYTHON_PROGRAMS = [
    *(
        (f"kubernetes=={version}", "kubernetes_client.py", PYTHON_CLIENT_LINES)
        for version in ("34.1.0", "35.0.0", "36.0.3", "37.0.2")
    ),
    ("kr8s==0.20.15", "kr8s_client.py", KR8S_LINES),
    ("kopf==1.45.2 kr8s==0.20.15", "kopf_operator.py", KOPF_LINES),
]

Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("programs")
    build_tests(output / "envtest", "./envtest")
    return build_programs(output, "./client-go", KUBECTL)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    with serving_module(tmp_path, "kubesim", "serve", "--kubernetes", KUBERNETES) as server:
        yield server.kubeconfig


@pytest.fixture
def kubectl(programs: Path, kubeconfig: Path) -> Kubectl:
    def run(*arguments: str, code: int = 0) -> str:
        done = ended([programs / "kubectl", "--kubeconfig", kubeconfig, *arguments], timeout=120)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    return run


@pytest.mark.parametrize(("requirements", "program", "lines"), PYTHON_PROGRAMS)
def test_python_clients(kubeconfig: Path, requirements: str, program: str, lines: str) -> None:
    environment = {"PYTHONPATH": str(install_packages(requirements)), "KUBECONFIG": str(kubeconfig)}
    done = ended(
        [sys.executable, CI_CLIENTS / "python" / program, OBJECTS],
        env=os.environ | environment,
        timeout=120,
    )
    assert (done.stdout, done.returncode) == (lines, 0), done.stderr


def test_client_go_sees_what_a_real_server_shows(programs: Path, kubeconfig: Path) -> None:
    """Informers, conflicts, apply, watches, pages, deletions: as JSON and as protobuf."""
    done = ended([programs / "client-go", kubeconfig, "kube-system"], timeout=120)
    expected = "".join(
        f"{GO_CLIENT_LINES}done with {kind}\n"
        for kind in ("application/json", "application/vnd.kubernetes.protobuf")
    )
    assert (done.stdout, done.stderr) == (expected, "")


def test_a_controller_is_tested_by_envtest(programs: Path, kubeconfig: Path) -> None:
    environment = os.environ | {"KUBECONFIG": str(kubeconfig)}
    done = ended([programs / "envtest"], env=environment, timeout=120)
    assert (done.stdout, done.returncode) == ("PASS\n", 0), done.stderr


def test_kubectl_applies_watches_describes_and_deletes(kubectl: Kubectl, tmp_path: Path) -> None:
    changed = tmp_path / "changed.yaml"
    changed.write_text(OBJECTS.read_text().replace('"one"', '"two"'))
    assert "pod/pod created" in kubectl("apply", "-f", str(OBJECTS))
    assert "condition met" in kubectl("wait", "--for=condition=PodScheduled", "pod/pod")
    assert "pod/pod configured" in kubectl("apply", "-f", str(changed))
    assert "pod/pod unchanged" in kubectl("apply", "-f", str(changed))
    server_side = ("apply", "--server-side", "--force-conflicts", "-f", str(changed))
    assert "pod/pod serverside-applied" in kubectl(*server_side)
    assert kubectl("get", "po", "-l", "step in (two)", "-o", "name") == "pod/pod\n"
    assert "gpu.example.com" in kubectl("describe", "resourceclaims")
    [titles, *claims] = kubectl("get", "resourceclaims").splitlines()
    assert titles.split() == ["NAME", "STATE", "AGE"]
    assert [row.split()[1] for row in claims] == ["allocated,reserved"]
    assert kubectl("get", "resourceslices").split()[:5] == ["NAME", "NODE", "DRIVER", "POOL", "AGE"]
    assert "Scheduled" in kubectl("describe", "pod", "pod")
    assert "Ready" in kubectl("describe", "node", "node-1")
    patch = '{"metadata": {"annotations": {"example.com/patched": "yes"}}}'
    for kind in ("strategic", "merge"):
        assert "pod/pod patched" in kubectl("patch", "pod", "pod", f"--type={kind}", "-p", patch)
        patch = patch.replace("yes", "again")
    json_patch = '[{"op": "remove", "path": "/metadata/annotations/example.com~1patched"}]'
    assert "pod/pod patched" in kubectl("patch", "pod", "pod", "--type=json", "-p", json_patch)
    assert "labeled" in kubectl("label", "resourceclaim", "gpu", "team=a")
    assert "annotated" in kubectl("annotate", "deviceclass", "gpu", "note=b")
    assert "(dry run)" in kubectl("delete", "-f", str(OBJECTS), "--dry-run=client")
    assert 'pod "pod" deleted' in kubectl("delete", "pod", "pod", "--timeout=60s")
    assert "NotFound" in kubectl("get", "pod", "pod", code=1)
    assert "deleted" in kubectl("delete", "resourceslices", "--all")


def test_kubectl_finds_kinds_and_refuses_unknown_fields(kubectl: Kubectl, tmp_path: Path) -> None:
    assert f"Server Version: v{KUBERNETES}" in kubectl("version")
    names = kubectl("api-resources", "-o", "name").split()
    assert {"pods", "deployments.apps", "resourceclaims.resource.k8s.io"} <= set(names)
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(OBJECTS.read_text().split("---")[1] + "spce: {}")
    assert 'unknown field "spce"' in kubectl("apply", "-f", str(wrong), code=1)
    assert "gpu created" in kubectl("apply", "--validate=false", "-f", str(wrong))
    assert "deleted" in kubectl("delete", "deviceclass", "gpu", "--timeout=60s")
