from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from localkube import command_driver
from localkube.base import ClusterUsageError
from localkube.controlplane import servers
from localkube.layout import Layout
from localkube.node import machine
from localkube.node.config import cni_config, containerd_config, filesystem_type, kubelet_config
from localkube.options import LocalOptions
from localkube.state import Network, Ports, State

LAYOUT = Layout("a", Path("/s/a"))
BINARIES = Path("/b")


def make_state(nodes: int = 2, **gates: bool) -> State:
    return State(
        name="a",
        binaries=BINARIES,
        nodes=nodes,
        feature_gates=gates,
        ports=Ports(
            api=1001,
            etcd=1002,
            etcd_http=1003,
            etcd_peer=1004,
            controller_manager=1005,
            scheduler=1006,
        ),
        network=Network("10.213.7.0/24") if nodes else None,
        owner=None,
    )


def test_kubelets_of_another_version_get_the_gates_that_they_know() -> None:
    state = make_state(DRAConsumableCapacity=True, DRAListTypeAttributes=True, Other=False)
    state = replace(state, kubelet=Path("/old"), kubelet_version="v1.34.4")
    gates = {"DRAConsumableCapacity": True, "Other": False}
    assert kubelet_config(LAYOUT, state, 1)["featureGates"] == gates
    assert machine.kubelet_spec(LAYOUT, state, 1).command[0] == "/old/kubelet"


@pytest.fixture(autouse=True)
def _tools_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "find_tool", lambda name: f"/usr/sbin/{name}")


def flags(command: tuple[str, ...]) -> dict[str, str]:
    pairs = (argument.removeprefix("--").partition("=") for argument in command[1:])
    return {name: value for name, _, value in pairs}


def component_flags(state: State) -> dict[str, dict[str, str]]:
    specs = (
        servers.apiserver_spec(LAYOUT, BINARIES, state),
        servers.controller_manager_spec(LAYOUT, BINARIES, state),
        servers.scheduler_spec(LAYOUT, BINARIES, state),
    )
    return {spec.name: flags(spec.command) for spec in specs}


def test_feature_gates_go_to_every_component_in_one_flag() -> None:
    state = make_state(DRAConsumableCapacity=True, AllBeta=False)
    for given in component_flags(state).values():
        assert given["feature-gates"] == "AllBeta=false,DRAConsumableCapacity=true"
    assert kubelet_config(LAYOUT, state, 1)["featureGates"] == {
        "DRAConsumableCapacity": True,
        "AllBeta": False,
    }


def test_without_feature_gates_the_releases_defaults_hold() -> None:
    for given in component_flags(make_state()).values():
        assert "feature-gates" not in given
    assert "featureGates" not in kubelet_config(LAYOUT, make_state(), 1)


def test_every_api_version_is_served() -> None:
    assert component_flags(make_state())["kube-apiserver"]["runtime-config"] == "api/all=true"


def test_control_plane_alone_listens_on_loopback_only() -> None:
    for given in component_flags(make_state(nodes=0)).values():
        assert given["bind-address"] == "127.0.0.1"
    etcd = flags(servers.etcd_spec(LAYOUT, BINARIES, make_state().ports).command)
    assert etcd["listen-client-urls"] == "https://127.0.0.1:1002"
    assert etcd["listen-client-http-urls"] == "https://127.0.0.1:1003"
    assert etcd["listen-peer-urls"] == "https://127.0.0.1:1004"


def test_nodes_reach_the_api_server_at_the_bridge() -> None:
    given = component_flags(make_state(nodes=1))["kube-apiserver"]
    assert given["bind-address"] == "0.0.0.0"
    assert given["advertise-address"] == "10.213.7.1"


def test_nobody_gets_in_without_credentials() -> None:
    etcd = flags(servers.etcd_spec(LAYOUT, BINARIES, make_state().ports).command)
    assert etcd["client-cert-auth"] == "true"
    assert etcd["peer-client-cert-auth"] == "true"
    assert component_flags(make_state())["kube-apiserver"]["anonymous-auth"] == "false"
    kubelet = kubelet_config(LAYOUT, make_state(), 1)
    assert kubelet["authentication"]["anonymous"] == {"enabled": False}


def test_no_command_line_holds_a_credential() -> None:
    """Everybody on the machine can read command lines."""
    state = make_state()
    specs = [
        servers.etcd_spec(LAYOUT, BINARIES, state.ports),
        servers.apiserver_spec(LAYOUT, BINARIES, state),
        machine.kubelet_spec(LAYOUT, state, 1),
    ]
    for spec in specs:
        for name, value in flags(spec.command).items():
            if "token" in name or "key" in name:
                assert value.startswith("/s/a/")


def test_scheduler_retries_without_the_long_default_back_off(tmp_path: Path) -> None:
    layout = Layout("a", tmp_path)
    layout.pki.mkdir()
    servers.write_scheduler_config(layout)
    document = yaml.safe_load((layout.pki / "scheduler.yaml").read_text())
    assert document["podMaxBackoffSeconds"] == 1
    assert document["clientConnection"]["kubeconfig"] == str(layout.kubeconfig_for("scheduler"))
    assert document["clientConnection"]["qps"] >= 1000


def test_components_of_the_control_plane_have_ports_of_their_own() -> None:
    given = component_flags(make_state())
    ports = [one["secure-port"] for one in given.values()]
    assert sorted(ports) == ["1001", "1005", "1006"]


@pytest.fixture
def containerd() -> dict[str, Any]:
    text = containerd_config(LAYOUT.node(1), BINARIES, "overlayfs")
    return tomllib.loads(text)


def test_containerd_config_is_toml_of_version_3_in_the_nodes_directory(
    containerd: dict[str, Any],
) -> None:
    assert containerd["version"] == 3
    for place in (containerd["root"], containerd["state"], containerd["grpc"]["address"]):
        assert place.startswith("/s/a/n1/")


def test_containerd_uses_what_is_the_nodes_own_and_leaves_the_machine_alone(
    containerd: dict[str, Any],
) -> None:
    runtime = containerd["plugins"]["io.containerd.cri.v1.runtime"]
    assert runtime["cdi_spec_dirs"] == [str(LAYOUT.node(1).cdi)]
    assert runtime["cni"]["bin_dirs"] == [str(BINARIES)]
    runc = runtime["containerd"]["runtimes"]["runc"]["options"]
    assert runc["BinaryName"] == "/b/runc-without-seccomp"
    for kept in ("netns_mounts_under_state_dir", "disable_apparmor", "restrict_oom_score_adj"):
        assert runtime[kept] is True


def test_containerd_serves_nri_in_the_nodes_directory_and_starts_none_of_the_machines_plugins(
    containerd: dict[str, Any],
) -> None:
    plugin = "io.containerd.nri.v1.nri"
    assert plugin not in containerd["disabled_plugins"]
    own = str(LAYOUT.node(1).nri)
    assert containerd["plugins"][plugin] == {
        "socket_path": f"{own}/nri.sock",
        "plugin_path": f"{own}/plugins",
        "plugin_config_path": f"{own}/conf.d",
    }


def test_containerd_paths_with_quotes_stay_valid_toml() -> None:
    odd = Layout("a", Path('/s/"a\\'))
    text = containerd_config(odd.node(1), BINARIES, "native")
    assert tomllib.loads(text)["root"] == '/s/"a\\/n1/c/root'


def test_each_node_has_addresses_of_its_own() -> None:
    state = make_state()
    assert kubelet_config(LAYOUT, state, 1)["address"] == "10.213.7.11"
    assert kubelet_config(LAYOUT, state, 2)["address"] == "10.213.7.12"
    subnets = [
        cni_config(LAYOUT.node(index), index)["plugins"][0]["ipam"]["ranges"][0][0]["subnet"]
        for index in (1, 2)
    ]
    assert subnets == ["10.214.1.0/24", "10.214.2.0/24"]


def test_nodes_do_not_share_a_cgroup_because_kubelets_remove_what_they_do_not_know() -> None:
    roots = {kubelet_config(LAYOUT, make_state(), index)["cgroupRoot"] for index in (1, 2)}
    assert len(roots) == 2
    assert all(root.startswith(LAYOUT.cgroup + "/") for root in roots)


def test_kubelet_runs_on_cgroup_v1_with_swap_and_makes_no_firewall_rule() -> None:
    (plugin,) = cni_config(LAYOUT.node(1), 1)["plugins"]
    assert not plugin.get("ipMasq", False)
    config = kubelet_config(LAYOUT, make_state(), 1)
    for off in ("makeIPTablesUtilChains", "failCgroupV1", "failSwapOn"):
        assert config[off] is False


def test_kubelets_files_are_all_below_the_nodes_directory() -> None:
    config = kubelet_config(LAYOUT, make_state(), 1)
    for key in ("podLogsDir", "volumePluginDir"):
        assert config[key].startswith("/s/a/n1/")
    command = flags(machine.kubelet_spec(LAYOUT, make_state(), 1).command)
    assert command["root-dir"] == str(LAYOUT.node(1).kubelet_root)
    assert command["cert-dir"].startswith("/s/a/n1/")


def test_node_holds_namespaces_for_network_mounts_and_processes() -> None:
    command = machine.holder_spec(LAYOUT.node(1), LAYOUT).command
    for option in ("--net", "--mount", "--pid", "--kill-child", "--ignore-signal=CHLD"):
        assert option in command


def test_filesystem_type_is_that_of_the_deepest_mount() -> None:
    assert filesystem_type(Path("/proc/self")) == "proc"
    assert filesystem_type(Path("/proc/../sys")) == "sysfs"
    assert filesystem_type(Path("/")) not in ("", "proc")


@pytest.mark.parametrize("nodes", [-1, 10])
def test_number_of_nodes_out_of_range_is_refused(nodes: int) -> None:
    with pytest.raises(ClusterUsageError, match="0 to 9"):
        LocalOptions(nodes=nodes)


def test_driver_without_a_node_is_refused() -> None:
    with pytest.raises(ClusterUsageError, match="at least one node"):
        LocalOptions(nodes=0, driver=command_driver("d.example.com", ("driver",)))
    with pytest.raises(ClusterUsageError, match="empty"):
        command_driver("d.example.com", ())


@pytest.mark.parametrize(
    ("version", "known"),
    [("v1.34.4", False), ("v1.35.4", False), ("v1.36.3", True), ("v1.37.1", True), ("", False)],
)
def test_a_flag_that_older_controllers_do_not_know_is_left_out(version: str, known: bool) -> None:
    state = replace(make_state(), kubernetes_version=version)
    flags = component_flags(state)["kube-controller-manager"]
    assert ("concurrent-resourceclaim-syncs" in flags) == known
