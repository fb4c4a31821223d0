"""Which options do not go together, or would have no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from conformance.targets.opening.options import (
    MOST_NODES,
    MOST_SKEW,
    REQUIRED_GATE,
    TABLE,
    ClusterName,
    TargetOptions,
    is_given,
)
from kube.base.errors import UsageError

if TYPE_CHECKING:
    from conformance.scenario.shape import ClusterShape

_OF_THE_REFERENCE = frozenset({"simulate", "dynamic_mig"})
"""Options that mean something in every cluster that is compared with the reference."""


def find_named_shape(options: TargetOptions) -> ClusterShape | None:
    """Return the shape that ``simulate`` names; None where it names GPUs. Raises UsageError."""
    from conformance.data import scenarios_dir
    from conformance.scenario.shape import find_shape

    return find_shape(options.simulate, scenarios_dir() / "shapes")


def check_options(options: TargetOptions) -> None:
    """Refuse options that contradict each other or would have no effect.

    Raises UsageError: naming the option, and what it goes with or what to write instead.
    """
    if options.target == "reference" and options.cluster is not None:
        raise UsageError("--cluster goes with --target cluster; the reference needs none")
    where = "reference" if options.target == "reference" else options.cluster
    if where is None:
        names = get_args(ClusterName)
        raise UsageError(f"--target cluster needs --cluster {', '.join(names[:-1])} or {names[-1]}")
    for item in TABLE:
        if not item.spec.places or where in item.spec.places or not is_given(options, item):
            continue
        if options.record and item.name in _OF_THE_REFERENCE:
            continue
        raise UsageError(
            f"{item.flag} goes with {_targets(item.spec.places)}; it has no effect here, and"
            " what you meant to test would not be tested"
        )
    for item in TABLE:
        versions = item.name in {"kubernetes_version", "node_kubernetes", "upgrade_to"}
        if versions and options.binaries and is_given(options, item):
            raise UsageError(
                f"{item.flag} has no effect on --binaries, which are of one version; give one of"
                " them"
            )
    _check_skew(options)
    if options.scheduler_command and not options.scheduler:
        raise UsageError(
            "--scheduler-command starts a scheduler that no pod would ask for; give --scheduler"
            " its name, too"
        )
    if (
        options.scheduler_kubernetes
        and options.cluster == "local"
        and not options.scheduler_command
        and not options.scheduler
    ):
        raise UsageError(
            "--scheduler-kubernetes is for a scheduler of another version than the cluster; this "
            "cluster's own is of --kubernetes; start another one with --scheduler-command"
        )
    if not 0 <= options.node_count <= MOST_NODES:
        raise UsageError(f"--nodes {options.nodes}: must be between 0 and {MOST_NODES}")
    _check_shape(options)
    _check_gates(options)
    _check_churn(options)


def _check_skew(options: TargetOptions) -> None:
    """Refuse versions that Kubernetes does not support beside each other.

    Source: kubernetes.io/releases/version-skew-policy: kubelets are never newer than the API
    server, and at most three minors older; one minor after the other is upgraded.
    """
    from localkube.binaries.versions import minor_number

    server = minor_number(f"v{options.version}")
    if options.node_kubernetes:
        if not options.node_count:
            raise UsageError("--node-kubernetes goes with nodes; --nodes 0 has no kubelet")
        if not 0 <= server - minor_number(f"v{options.node_kubernetes}") <= MOST_SKEW:
            raise UsageError(
                f"--node-kubernetes {options.node_kubernetes}: kubelets may be at most {MOST_SKEW}"
                f" minors older than the API server ({options.version}), and never newer"
            )
    if options.upgrade_to and minor_number(f"v{options.upgrade_to}") != server + 1:
        raise UsageError(
            f"--upgrade-to {options.upgrade_to}: an API server is upgraded by one minor, here from"
            f" {options.version}; --kubernetes says what to begin with"
        )


def _check_churn(options: TargetOptions) -> None:
    """Refuse long churn where it may disturb others, or where its record would not fit."""
    if not 0 <= options.churn_seed <= 2**31:
        raise UsageError(f"--churn-seed {options.churn_seed}: must be between 1 and {2**31}")
    if not options.churn_time:
        return
    if options.cluster in {"kubeconfig", "kind"} and not options.churn_here:
        raise UsageError(
            "--churn-time keeps scheduler and API server busy, also for others who use this"
            " cluster; if that may be, add --churn-here"
        )
    if options.record:
        raise UsageError("--churn-time does not go with --compare: what churn does is not compared")


def _check_shape(options: TargetOptions) -> None:
    if find_named_shape(options) is None:
        return
    if options.cluster == "local":
        raise UsageError(
            f"--simulate {options.simulate}: that is a cluster's shape, which is for --target "
            "reference; a local cluster takes GPUs, and --nodes"
        )
    if options.target == "reference" and options.node_count != 1:
        raise UsageError(f"--nodes {options.nodes}: the shape {options.simulate} defines the nodes")


def _targets(places: tuple[str, ...]) -> str:
    clusters = " or ".join(f"--cluster {cluster}" for cluster in places if cluster != "reference")
    text = f"--target cluster {clusters}"
    return f"--target reference, or with {text}" if "reference" in places else text


def _check_gates(options: TargetOptions) -> None:
    """Refuse gates that no Kubernetes of that version has or would start with.

    What the table of DRA's gates does not know is left to the components of a local cluster, which
    know all the others and refuse what they do not know. With --binaries theirs is the last word.
    """
    if not options.feature_gates:
        return
    if options.feature_gates.get(REQUIRED_GATE) is False:
        raise UsageError(
            f"--feature-gate {REQUIRED_GATE}=false turns DRA off, and nothing would be tested;"
            " leave it out"
        )
    if options.binaries is not None:
        return
    from reference_allocator.gates import check_gates, gates_for_version

    version = options.version
    known_gates = gates_for_version(version)
    unknown_gates = (
        set()
        if options.target == "reference"
        else options.feature_gates.keys() - known_gates.keys()
    )
    try:
        check_gates(
            version,
            {
                name: on
                for name, on in options.feature_gates.items()
                if name not in unknown_gates or name.startswith("DRA")
            },
        )
    except ValueError as error:
        raise UsageError(f"--feature-gate: {error}") from None
