"""The control plane's four processes: their flags, and why each that is not obvious is there.

No root is needed. Rates are far above the defaults because a suite is the cluster's only user:
with the default client limits (20 to 50 requests a second) the controllers' own throttle, and not
the behaviour under test, would set the length of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from kube.components import OTHER_SCHEDULER
from localkube.binaries.versions import minor_number
from localkube.layout import Layout
from localkube.processes.supervision import ProcessSpec
from localkube.processes.tools import GO_SETTINGS, find_program
from localkube.state import LOOPBACK, Ports, State

SERVICE_CIDR = "10.96.0.0/16"
ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 (nodes come in over the bridge; nobody without a token)

QPS = 1000
BURST = 2000


def etcd_spec(layout: Layout, binaries: Path, ports: Ports) -> ProcessSpec:
    """Etcd on loopback, with client certificates: no other user of the machine can write to it."""
    pki = layout.pki
    client, peer = f"https://{LOOPBACK}:{ports.etcd}", f"https://{LOOPBACK}:{ports.etcd_peer}"
    server = (f"--cert-file={pki}/etcd.crt", f"--key-file={pki}/etcd.key")
    return _spec(
        layout,
        binaries,
        "etcd",
        f"--data-dir={layout.dir}/etcd",
        # Data of a test cluster need not survive a power cut, and fsync is most of a write's time.
        "--unsafe-no-fsync=true",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        # With HTTP on the same port, etcd serves gRPC through net/http: a sixth more CPU here.
        f"--listen-client-http-urls=https://{LOOPBACK}:{ports.etcd_http}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        *server,
        f"--trusted-ca-file={pki}/ca.crt",
        "--client-cert-auth=true",
        *(flag.replace("--", "--peer-", 1) for flag in server),
        f"--peer-trusted-ca-file={pki}/ca.crt",
        "--peer-client-cert-auth=true",
        "--log-level=warn",
    )


def apiserver_spec(layout: Layout, binaries: Path, state: State) -> ProcessSpec:
    """kube-apiserver; on loopback alone where there is no node to reach it from elsewhere."""
    pki = layout.pki
    return _spec(
        layout,
        binaries,
        "kube-apiserver",
        f"--etcd-servers=https://{LOOPBACK}:{state.ports.etcd}",
        f"--etcd-cafile={pki}/ca.crt",
        f"--etcd-certfile={pki}/etcd-client.crt",
        f"--etcd-keyfile={pki}/etcd-client.key",
        # Nodes live in network namespaces of their own and come in over the bridge.
        f"--bind-address={ALL_ADDRESSES if state.network else LOOPBACK}",
        f"--advertise-address={state.network.gateway if state.network else LOOPBACK}",
        f"--secure-port={state.ports.api}",
        f"--tls-cert-file={pki}/kube-apiserver.crt",
        f"--tls-private-key-file={pki}/kube-apiserver.key",
        f"--token-auth-file={pki}/tokens.csv",
        "--anonymous-auth=false",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki}/service-accounts.pub",
        f"--service-account-signing-key-file={pki}/service-accounts.key",
        f"--kubelet-certificate-authority={pki}/ca.crt",
        f"--kubelet-client-certificate={pki}/kubelet-client.crt",
        f"--kubelet-client-key={pki}/kubelet-client.key",
        # Without it logs and exec look the node's name up in DNS.
        "--kubelet-preferred-address-types=InternalIP",
        # Every API version that the server knows: scenarios read objects back through each.
        "--runtime-config=api/all=true",
        "--allow-privileged=true",
        # The endpoints of the kubernetes service would need a non-loopback address.
        "--endpoint-reconciler-type=none",
        # By default an open watch holds up its end for a minute (genericapiserver.go).
        "--shutdown-watch-termination-grace-period=1s",
        *feature_gates(state.feature_gates),
        "--v=2",
    )


def controller_manager_spec(layout: Layout, binaries: Path, state: State) -> ProcessSpec:
    """kube-controller-manager, with more workers where a suite waits for them.

    ``state`` has the version that the API server reports: which flags there are depends on it.
    """
    pki = layout.pki
    kubeconfig = layout.kubeconfig_for("controller-manager")
    # cmd/kube-controller-manager/app/options/resourceclaimcontroller.go has the flag since 1.36.
    claims = minor_number(state.kubernetes_version) >= 36
    return _spec(
        layout,
        binaries,
        "kube-controller-manager",
        *_serving(layout, "kube-controller-manager", state.ports.controller_manager),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        # One instance: an election would only delay it.
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={pki}/service-accounts.key",
        f"--root-ca-file={pki}/ca.crt",
        f"--kube-api-qps={QPS}",
        f"--kube-api-burst={BURST}",
        # Every scenario has a namespace of its own, and namespaces go in the background: each
        # worker is held for about five seconds by the namespace controller's fixed wait.
        "--concurrent-namespace-syncs=50",
        *(("--concurrent-resourceclaim-syncs=50",) if claims else ()),
        "--concurrent-job-syncs=20",
        "--concurrent-gc-syncs=50",
        "--concurrent-serviceaccount-token-syncs=20",
        *feature_gates(state.feature_gates),
        "--v=2",
    )


def scheduler_spec(layout: Layout, binaries: Path, state: State) -> ProcessSpec:
    """kube-scheduler with the default plugins."""
    kubeconfig = layout.kubeconfig_for("scheduler")
    return _spec(
        layout,
        binaries,
        "kube-scheduler",
        *_serving(layout, "kube-scheduler", state.ports.scheduler),
        f"--config={layout.pki}/scheduler.yaml",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        *feature_gates(state.feature_gates),
        "--v=2",
    )


def other_scheduler_spec(layout: Layout, command: tuple[str, ...]) -> ProcessSpec:
    """A scheduler beside kube-scheduler, which is administrator: it may need objects of its own.

    Raises ClusterUsageError: its program does not exist or is not executable.
    """
    program = find_program(command[0])
    env = {"KUBECONFIG": str(layout.kubeconfig)}
    full = (program, *command[1:])
    log = layout.log(OTHER_SCHEDULER)
    return ProcessSpec(OTHER_SCHEDULER, full, log, env=env, inherit_env=True)


def write_scheduler_config(layout: Layout) -> None:
    """Write the KubeSchedulerConfiguration: the file is the only way to the client's limits."""
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {
            "kubeconfig": str(layout.kubeconfig_for("scheduler")),
            "qps": QPS,
            "burst": BURST,
        },
        # The default maximum is 10 s: a pod that became schedulable could wait that long.
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
    }
    (layout.pki / "scheduler.yaml").write_text(yaml.safe_dump(document, sort_keys=False))


def _serving(layout: Layout, name: str, port: int) -> tuple[str, ...]:
    return (
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--tls-cert-file={layout.pki}/{name}.crt",
        f"--tls-private-key-file={layout.pki}/{name}.key",
    )


def feature_gates(gates: Mapping[str, bool]) -> tuple[str, ...]:
    """Return the flag that sets feature gates; none for no gates."""
    if not gates:
        return ()
    values = ",".join(f"{name}={str(on).lower()}" for name, on in sorted(gates.items()))
    return (f"--feature-gates={values}",)


def _spec(layout: Layout, binaries: Path, name: str, *flags: str) -> ProcessSpec:
    return ProcessSpec(name, (str(binaries / name), *flags), layout.log(name), env=GO_SETTINGS)
