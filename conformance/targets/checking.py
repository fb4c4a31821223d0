"""Options that would do nothing are refused: a run must have tested what its user asked for."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from conformance.clusters.local.state import State
from conformance.errors import UsageError
from conformance.targets.options import TargetOptions

_LOCAL: Final = frozenset({"local"})
_STARTED: Final = frozenset({"local", "kind"})
_WHERE: Final = {
    "kubeconfig": frozenset({"kubeconfig"}),
    "context": frozenset({"kubeconfig"}),
    "driver_command": _LOCAL,
    "binaries": _LOCAL,
    "nodes": _LOCAL,
    "name": _STARTED,
    "keep": _STARTED,
    "image_archives": frozenset({"kind"}),
    "feature_gates": frozenset({"local", "reference"}),
    "simulate": frozenset({"local", "reference"}),
    "dynamic_mig": frozenset({"local", "reference"}),
}
"""Option -> where it means something."""

_FLAGS: Final = {
    "image_archives": "--image-archive",
    "feature_gates": "--feature-gate",
    "keep": "--keep-cluster",
}
_OF_THE_REFERENCE: Final = frozenset({"simulate", "dynamic_mig"})
"""Options that mean something in every cluster that is compared with the reference."""


def check_options(options: TargetOptions) -> None:
    """Refuse each option that has no effect on the target that is asked for.

    Raises:
        UsageError: naming the option and what it goes with.
    """
    if options.target == "reference" and options.cluster is not None:
        raise UsageError("--cluster goes with --target cluster; the reference needs none")
    where = "reference" if options.target == "reference" else options.cluster
    if where is None:
        raise UsageError("--target cluster needs --cluster kubeconfig, kind or local")
    for option in fields(options):
        places = _WHERE.get(option.name)
        if places is None or where in places or not _given(options, option.name):
            continue
        if options.record and option.name in _OF_THE_REFERENCE:
            continue
        clusters = [f"--cluster {place}" for place in sorted(places - {"reference"})]
        with_what = f"--target cluster {' or '.join(clusters)}"
        if "reference" in places:
            with_what = f"--target reference, or with {with_what}"
        raise UsageError(
            f"{_flag(option.name)} goes with {with_what}; here it would do nothing, and what you "
            "meant to test would not be tested"
        )


def check_running(options: TargetOptions, state: State) -> None:
    """Refuse what a local cluster that runs already was not started with.

    Raises:
        UsageError: naming the option and what the cluster has.
    """
    problem = ""
    if options.driver_command:
        problem = "--driver-command starts a driver with the cluster"
    elif options.binaries is not None and options.binaries.resolve() != state.binaries.resolve():
        problem = f"--binaries: it has those of {state.binaries}"
    elif _given(options, "nodes") and options.nodes != state.nodes:
        problem = f"--nodes {options.nodes}: it has {state.nodes}"
    else:
        for gate, wanted in options.feature_gates.items():
            if state.feature_gates.get(gate) != wanted:
                problem = f"--feature-gate {gate}: it was started without that"
    if problem:
        raise UsageError(
            f"the local cluster {options.name!r} runs already, and {problem}; choose another "
            f"--name, or remove it first: dra-conformance cluster down --name {options.name}"
        )


def _given(options: TargetOptions, name: str) -> bool:
    value, usual = getattr(options, name), getattr(TargetOptions(), name)
    return bool(value != usual)


def _flag(name: str) -> str:
    return _FLAGS.get(name, "--" + name.replace("_", "-"))
