"""Options about the target that few runs need: kind clusters, several versions, churn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from conformance.options import given
from conformance.targets.opening.conversions import version_of
from kube.base.errors import UsageError

KIND, VERSIONS, CHURN = "kind cluster", "Several versions", "Churn scenarios"


def seconds_of(text: str) -> float:
    """Seconds of a duration. Raises UsageError: it is none, or longer than an hour."""
    from conformance.scenario.base import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--churn-time {text!r}: {error}") from None


@dataclass(frozen=True, slots=True)
class LessUsed:
    """The last options of ``TargetOptions``."""

    node_image: str = given(
        "",
        "Node image, which determines the Kubernetes version. [default: kind's own]",
        KIND,
        metavar="IMAGE",
        places=("kind",),
    )
    image_archives: tuple[Path, ...] = given(
        (),
        "Image archive to load into the cluster (repeatable).",
        KIND,
        flag="--image-archive",
        metavar="FILE",
        places=("kind",),
    )
    kind_config: Path | None = given(
        None,
        "Configuration file for kind. [default: ci/kind/cluster.yaml, three nodes]",
        KIND,
        metavar="FILE",
        places=("kind",),
    )
    driver_manifests: str = given(
        "",
        "Manifests that install the driver for the run, in any form that kubectl accepts: "
        "a kustomization, a folder, a file or a URL.",
        KIND,
        metavar="PATH|URL",
        places=("kind",),
    )
    node_kubernetes: str = given(
        "",
        "Kubernetes version of a local cluster's kubelets, at most three minors older than "
        "--kubernetes. [default: that of --kubernetes]",
        VERSIONS,
        metavar="VERSION",
        convert=partial(version_of, option="--node-kubernetes"),
        places=("local",),
    )
    upgrade_to: str = given(
        "",
        "Kubernetes version, of the next minor, that scenarios upgrade a local cluster to.",
        VERSIONS,
        metavar="VERSION",
        convert=partial(version_of, option="--upgrade-to"),
        places=("local",),
    )
    churn_time: float = given(
        0.0,
        "Repeat churn for this long (10m), each round with the next seed. "
        "[default: one round, as long as the scenario specifies]",
        CHURN,
        metavar="TIME",
        type=str,
        convert=seconds_of,
    )
    churn_seed: int = given(
        0, "Seed of the first round; 0 uses the scenario's seed.", CHURN, metavar="SEED"
    )
    churn_here: bool = given(
        False,
        "Allow --churn-time on a cluster that others may be using.",
        CHURN,
        places=("kubeconfig", "kind"),
    )
