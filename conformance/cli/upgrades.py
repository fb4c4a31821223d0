"""Prints what another Kubernetes minor treats otherwise, for ``audit --upgrade-to``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import typer

from conformance.cli.output import print_progress, printable
from conformance.scenario.upgrades import (
    NOT_IN_A_SNAPSHOT,
    check_upgrade,
    find_problems,
    list_objects,
)
from conformance.targets.opening.options import TargetOptions
from kube.base.errors import ExitCode, TargetError
from kube.base.text import counted
from kube.values import Obj

_BESIDE_A_SNAPSHOT = ("ResourceClaimTemplate", "DeviceTaintRule")


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
    objects = list_objects(snapshot)
    if options is not None:
        objects += _read_beside(options)
    problems = find_problems(objects, before, after)
    if as_json:
        shown = ("change", "object", "path", "text", "advice")
        rows = [{name: getattr(problem, name) for name in shown} for problem in problems]
        typer.echo(json.dumps(rows, indent=2))
    advised: set[str] = set()
    for problem in () if as_json else problems:
        typer.echo(printable(f"{problem.change}: {problem.object}: {problem.path}: {problem.text}"))
        if problem.change not in advised:
            typer.echo(printable(f"  {problem.advice}"))
        advised.add(problem.change)
    print_progress(
        f"{counted(len(objects), 'object')} looked at for Kubernetes {before} to {after}, "
        f"{counted(len(problems), 'problem')}"
    )
    if options is None:
        print_progress(NOT_IN_A_SNAPSHOT)
    return ExitCode.NOT_CONFORMANT if problems else ExitCode.CONFORMANT


def _read_beside(options: TargetOptions) -> list[Obj]:
    """Return what a cluster has of DRA beside what is in its snapshot; say what cannot be read."""
    from conformance.targets.opening.target import open_api
    from kube.errors import ApiError

    objects: list[Obj] = []
    with open_api(options) as api:
        for kind in _BESIDE_A_SNAPSHOT:
            try:
                version = api.discovery.dra_version()
                items = api.list(api.discovery.find(version, kind))
                objects += [{"apiVersion": version, "kind": kind, **item} for item in items]
            except (ApiError, TargetError) as error:
                print_progress(f"warning: no {kind} looked at: {error}")
    return objects
