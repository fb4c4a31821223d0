"""Read what people have of a cluster: a snapshot, or what kubectl and must-gather write.

A file, a folder or standard input, YAML or JSON, packed or not. What could not be read is told, and
the rest is judged without it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from kube.base.errors import UsageError
from kube.base.files import open_regular
from kube.manifests import read_manifests
from kube.values import Obj
from reference_allocator.features import Features
from reference_allocator.snapshot import API_VERSION, KIND

if TYPE_CHECKING:
    from conformance.compare.gathering import Gathering

STANDARD_INPUT: Final = Path("-")

_SUFFIXES: Final = tuple(
    f"{name}{packed}" for name in (".yaml", ".yml", ".json") for packed in ("", ".gz")
)
_MAX_FILES: Final = 200_000
_OWN_FIELDS: Final = frozenset(
    ("allocated", "allocations", "claims", "deviceClasses", "nodes", "pod", "slices", "snapshot")
)
"""Fields of decisions and snapshots."""

Report = Callable[[str], object]


def refuse_unread(problem: str) -> None:
    """Raise UsageError: something that was given could not be read."""
    raise UsageError(problem)


def read_dump(
    path: Path,
    report_unread: Report = refuse_unread,
    report_missing: Report = lambda _text: None,
    report_progress: Callable[[int], object] = lambda _size: None,
    kubernetes: str = "",
) -> Obj:
    """Return a snapshot's document, or a decision's, of what is in a file, a folder or ``-``.

    Args:
        report_unread: gets each problem because of which something is left out; the rest is read.
        report_missing: gets what was not given and what is assumed instead, each with what to do.
        report_progress: gets the bytes of a text that were read until now.
        kubernetes: the version that it is to be of; empty: its own.

    Raises UsageError: nothing in it can be used.
    """
    folder = path != STANDARD_INPUT and path.is_dir()
    gathering: Gathering | None = None
    evidence: Obj | None = None
    for name, opened in _open_files(path, folder, report_unread):
        try:
            with opened() as stream:
                for manifest in read_manifests(stream, name, report_progress):
                    if _is_evidence(manifest.obj):
                        if folder:
                            raise UsageError(f"{name}: is evidence of its own; give it alone")
                        if evidence is None:  # and on to the end: it may be cut off
                            evidence = manifest.obj
                        continue
                    gathering = gathering or _start_gathering(report_unread)
                    gathering.take(manifest, name)
        except OSError as error:
            refuse = refuse_unread if not folder else report_unread
            refuse(f"{name}: cannot be read: {error.strerror}; check the path")
        except UsageError as error:
            if not folder and (gathering is None or gathering.is_empty):
                raise
            report_unread(str(error))
    if evidence is not None:
        return _set_version(evidence, kubernetes)
    if gathering is None:
        raise UsageError(f"{path}: is empty; take it from its source again")
    return gathering.make_document(str(path), report_missing, kubernetes)


def _set_version(document: Obj, kubernetes: str) -> Obj:
    """Return a snapshot as another version with its default gates has it; others as they are."""
    if not kubernetes or document.get("kind") != KIND:
        return document
    features = Features.for_version(kubernetes).to_dict()
    return {**document, "kubernetes": kubernetes, "features": features}


def _start_gathering(report_unread: Report) -> Gathering:
    # Imported here: it knows an API server and its clients, which a snapshot does not need.
    from conformance.compare.gathering import Gathering

    return Gathering(report_unread)


def _is_evidence(obj: Obj) -> bool:
    """Return whether it is a document of the suite's own; a decision does not say what it is."""
    group = str(obj.get("apiVersion")).partition("/")[0]
    is_own = obj.get("kind") == KIND or group == API_VERSION.partition("/")[0]
    return is_own or ("kind" not in obj and (not obj or not obj.keys().isdisjoint(_OWN_FIELDS)))


def _open_files(
    path: Path, folder: bool, report_unread: Report
) -> Iterator[tuple[str, Callable[[], BinaryIO]]]:
    if path == STANDARD_INPUT:
        yield "standard input", lambda: os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    elif not folder:
        yield str(path), lambda: open_regular(path)
    else:
        files = 0

        def refuse(error: OSError) -> None:
            report_unread(f"{error.filename}: cannot be read: {error.strerror}; check its rights")

        for parent, folders, names in os.walk(path, onerror=refuse):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                if name.endswith(_SUFFIXES):
                    files += 1
                    if files > _MAX_FILES:
                        raise UsageError(
                            f"{path}: has more than {_MAX_FILES} files; give a part of it"
                        )
                    file = Path(parent, name)
                    yield str(file), partial(open_regular, file)
