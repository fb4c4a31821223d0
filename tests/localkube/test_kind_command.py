"""The real kind command, built from its pinned module, on our configs.

No container engine is needed: one part shows that kind accepts a config and only then misses the
engine; the other part gives it a stand-in for ``docker`` that says yes to all, and reads what kind
wants to write into the nodes.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from localkube import data
from localkube.base import ClusterError
from localkube.kind import KindCluster, kind_command
from reference_allocator.gates import MINORS, gates_for_version

CONFIGS = sorted(data.kind_dir().glob("*.yaml"))

_DOCKER = """#!/bin/sh
D={home}
case "$*" in
  -v) echo "Docker version 28.2.2" ;;
  "info --format"*) echo '{{"OSType":"linux","CgroupDriver":"systemd","CgroupVersion":"2",\
"MemoryLimit":true,"PidsLimit":true,"CPUShares":true,"Driver":"overlay2"}}' ;;
  "run --name "*) echo "$3" >> $D/nodes ;;
  "ps -a"*) if [ -f $D/nodes ]; then cat $D/nodes; fi ;;
  "rm -f "*) echo "$*" >> $D/removed; rm $D/nodes ;;
  "logs -f"*) echo "Reached target Multi-User System." ;;
  *"cat /kind/version") echo v1.36.1 ;;
  *"cat /etc/containerd/config.toml") echo "version = 2" ;;
  "inspect -f {{{{range .NetworkSettings"*) echo "172.18.0.2," ;;
  *"io.x-k8s.kind.role"*)
    case "$*" in *control-plane) echo control-plane ;; *) echo worker ;; esac ;;
  *"cp /dev/stdin "*) cat > "$D/$4$(echo "$7" | tr / _)" ;;
  *"kubeadm init"*) echo "no node here" >&2; exit 7 ;;
esac
"""


@pytest.fixture(scope="module")
def kind() -> str:
    return kind_command()[0]


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    home = tmp_path / "engine"
    home.mkdir()
    docker = home / "docker"
    docker.write_text(_DOCKER.format(home=home))
    docker.chmod(0o755)
    return home


def create(kind: str, config: Path, path: str, state: Path) -> str:
    """The error of creating a cluster with ``path`` as the PATH."""
    cluster = KindCluster(
        "t", config=config, command=["env", f"PATH={path}", kind], state_dir=state
    )
    with pytest.raises(ClusterError) as caught:
        cluster.up()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_every_gate_of_a_config_is_known_to_every_supported_kubernetes(config: Path) -> None:
    gates = yaml.safe_load(config.read_text())["featureGates"]
    for minor in MINORS:
        assert set(gates) <= set(gates_for_version(minor)), minor


def test_there_are_configs() -> None:
    assert [path.name for path in CONFIGS] == ["cluster.yaml", "one-node.yaml"]


@pytest.mark.needs_kind
@pytest.mark.needs_go
@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_a_config_is_accepted_and_only_the_engine_is_missed(
    kind: str, config: Path, tmp_path: Path
) -> None:
    error = create(kind, config, str(tmp_path), tmp_path / "state")
    assert "container engine" in error
    assert "decode" not in error


@pytest.mark.needs_kind
@pytest.mark.needs_go
def test_a_config_with_an_unknown_field_is_refused_before_the_engine_is_looked_for(
    kind: str, tmp_path: Path
) -> None:
    config = tmp_path / "broken.yaml"
    config.write_text(CONFIGS[0].read_text() + "featureGatez: {}\n")
    error = create(kind, config, str(tmp_path), tmp_path / "state")
    assert "featureGatez not found" in error
    assert "container engine" not in error


@pytest.mark.needs_kind
@pytest.mark.needs_go
def test_a_config_with_a_wrong_role_is_refused(kind: str, engine: Path, tmp_path: Path) -> None:
    config = tmp_path / "broken.yaml"
    config.write_text(CONFIGS[0].read_text().replace("role: worker", "role: helper", 1))
    error = create(kind, config, f"{engine}:/usr/bin:/bin", tmp_path / "state")
    assert "invalid configuration" in error
    assert not (engine / "nodes").exists()


@pytest.mark.needs_kind
@pytest.mark.needs_go
@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_the_nodes_get_the_gates_the_api_versions_and_cdi(
    kind: str, engine: Path, tmp_path: Path, config: Path
) -> None:
    error = create(kind, config, f"{engine}:/usr/bin:/bin", tmp_path / "state")
    assert "kubeadm init" in error  # as far as it gets without a node
    wanted = yaml.safe_load(config.read_text())
    gates = ",".join(f"{gate}=true" for gate in sorted(wanted["featureGates"]))
    control_plane = "dra-conformance-t-control-plane"
    documents = {
        document["kind"]: document
        for document in yaml.safe_load_all(
            (engine / f"{control_plane}_kind_kubeadm.conf").read_text()
        )
    }
    cluster = documents["ClusterConfiguration"]
    for component in ("apiServer", "controllerManager", "scheduler"):
        arguments = {a["name"]: a["value"] for a in cluster[component]["extraArgs"]}
        assert arguments["feature-gates"] == gates
    served = {a["name"]: a["value"] for a in cluster["apiServer"]["extraArgs"]}["runtime-config"]
    assert served == "resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true"
    assert documents["KubeletConfiguration"]["featureGates"] == wanted["featureGates"]
    containerd = sorted(engine.glob("*_etc_containerd_config.toml"))
    assert len(containerd) == len(wanted["nodes"])
    for path in containerd:
        assert re.search(r"enable_cdi = true", path.read_text())
    # What was begun is removed again.
    assert control_plane in (engine / "removed").read_text()
    assert not (tmp_path / "state" / "created.json").exists()
