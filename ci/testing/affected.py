"""Which parts of `make everything` a change touches, from imports and paths."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatch
from functools import cache

import grimp

from ci.testing.part import ROOT, Part

PACKAGES = ("conformance", "kube", "nvml_driver", "reference_allocator")


def changed(base: str) -> list[str]:
    """Paths that differ from a commit, with what is not committed.

    Raises:
        ValueError: git knows no such commit.
    """
    done = subprocess.run(
        ["git", "diff", "--name-only", "--end-of-options", base, "--"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ValueError(f"git knows no commit {base!r}; name one, for example HEAD~3")
    new = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted({*done.stdout.splitlines(), *new.stdout.splitlines()})


@cache
def graph() -> grimp.ImportGraph:
    """Who imports whom in the product, read once."""
    return grimp.build_graph(*PACKAGES)


@cache
def imported_from() -> dict[str, set[str]]:
    """Path of a module -> paths of the modules that import it."""
    paths = {name: _path(name) for name in graph().modules}
    return {
        paths[name]: {paths[one] for one in graph().find_modules_that_directly_import(name)}
        for name in paths
    }


def _path(module: str) -> str:
    place = module.replace(".", "/")
    return f"{place}/__init__.py" if (ROOT / place).is_dir() else f"{place}.py"


def touched(
    every: Mapping[str, Part], paths: Iterable[str], importers: Mapping[str, Collection[str]]
) -> dict[str, str]:
    """Part -> the change for which it should run.

    A part is touched by a change of what it is about, or of what that imports directly: a defect
    further below shows in `make test`.
    """
    found: dict[str, str] = {}
    for path in paths:
        near = {path, *importers.get(path, ())}
        for part in every.values():
            if part.ring == "everything" and any(
                fnmatch(one, pattern) for one in near for pattern in part.paths
            ):
                found.setdefault(part.name, path)
    return found
