"""Prints what another Kubernetes minor treats otherwise, for ``audit --upgrade-to``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer

from conformance.cli.output import print_progress, printable
from conformance.scenario.upgrades.finding import check_upgrade, find_problems, list_objects
from conformance.targets.opening.options import TargetOptions
from kube.base.errors import ExitCode, TargetError
from kube.base.text import counted, fold
from kube.values import Obj
from reference_allocator.features import Features

_OF_FILES = (
    "flags and configurations of components, API versions that clients use; `lint --kubernetes` "
    "looks at those in files"
)


def print_upgrade(
    snapshot: Mapping[str, Any], target: str, options: TargetOptions | None, *, as_json: bool
) -> ExitCode:
    """Print what a later minor treats otherwise, and return the exit code.

    Args:
        snapshot: of a cluster, as it is now.
        target: the version that the cluster is to become.
        options: the cluster, where there is one: what no snapshot has is read from it.

    Raises UsageError: see `check_upgrade`.
    """
    before, after = check_upgrade(str(snapshot.get("kubernetes") or ""), target)
    unknown: list[str] = []
    missing = ["DeviceTaintRule"]  # No snapshot has them.
    if "templates" not in snapshot:
        missing.insert(0, "ResourceClaimTemplate")
    objects = list_objects(snapshot, unknown.append)
    if options is not None:
        objects += _read_missing(options, missing, unknown.append)
    features = snapshot.get("features")
    problems = find_problems(
        objects,
        before,
        after,
        None if features is None else Features.from_dict(features),
        unknown.append,
    )
    if as_json:
        shown = ("change", "object", "path", "text", "advice")
        rows = [{name: getattr(problem, name) for name in shown} for problem in problems]
        typer.echo(json.dumps(rows, indent=2))
    advised: set[str] = set()
    for problem in () if as_json else problems:
        line = f"{problem.change}: {problem.object}: {problem.path}: {problem.text}"
        typer.echo(printable("\n".join(fold(line, "", "  "))))
        if problem.change not in advised:
            typer.echo("\n".join(fold(problem.advice, "  ", "    ")))
        advised.add(problem.change)
    for text in unknown:
        print_progress("\n".join(fold(f"warning: {text}", "", "  ")))
    print_progress(
        f"{counted(len(objects), 'object')} looked at for Kubernetes {before} to {after}, "
        f"{counted(len(problems), 'problem')}"
    )
    if options is None:
        kinds = "".join(f"{kind}s, " for kind in missing)
        print_progress("\n".join(fold(f"not looked at: {kinds}{_OF_FILES}", "", "  ")))
    if problems:
        return ExitCode.NOT_CONFORMANT
    return ExitCode.INCONCLUSIVE if unknown else ExitCode.CONFORMANT


def _read_missing(
    options: TargetOptions, kinds: Sequence[str], report: Callable[[str], None]
) -> list[Obj]:
    """Return what a cluster has of DRA beside what is in its snapshot; say what cannot be read."""
    from conformance.targets.opening.target import open_api
    from kube.errors import ApiError

    objects: list[Obj] = []
    with open_api(options) as api:
        for kind in kinds:
            try:
                version = api.discovery.dra_version()
                items = api.list(api.discovery.find(version, kind))
                objects += [{"apiVersion": version, "kind": kind, **item} for item in items]
            except (ApiError, TargetError) as error:
                report(f"no {kind} looked at: {error}")
    return objects
