"""Find scenario files, read them, and hand them out with their public ids."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from conformance.data import scenarios_dir
from conformance.digest import document_digest
from conformance.scenario.documents.validate import (
    USES,
    InvalidDocumentError,
    is_own,
    one_document,
    validate_document,
)
from conformance.scenario.documents.yamlfile import (
    Document,
    PathTuple,
    Problem,
    read_documents,
    yaml_files,
)
from conformance.scenario.driver.variables import Variables, substitute
from conformance.scenario.lint.scenarios import check_scenario
from conformance.scenario.model import Scenario
from conformance.scenario.short.expand import expand_document
from kube.base.errors import UsageError
from kube.base.text import cut

SCENARIO_FOLDERS = ("core", "extended", "regressions")


@dataclass(frozen=True, slots=True)
class LoadedScenario:
    """A scenario with where it came from.

    Attributes:
        id: path below the scenario root without suffix, for example ``core/isolation-container``.
        document: in full, see :func:`conformance.scenario.short.expand.expand_document`.
        digest: ``sha256:`` over the document's canonical JSON.
    """

    id: str
    scenario: Scenario
    document: Document
    digest: str

    def bind(self, variables: Variables) -> Scenario:
        """Return the scenario with its variables replaced. Raises UsageError."""
        return validate_document(Scenario, self.bind_document(variables))

    def bind_document(self, variables: Variables) -> Document:
        """Return the document with each ``${...}`` replaced. Raises UsageError for unknown ones."""

        def fill_text(value: Any, path: PathTuple) -> Any:
            try:
                return substitute(value, variables.look_up)
            except UsageError as error:
                raise UsageError(self.document.tell(Problem(path, str(error)))) from None

        def replace(value: Any, path: PathTuple) -> Any:
            if isinstance(value, dict):
                return {
                    fill_text(key, (*path, key)): replace(item, (*path, key))
                    for key, item in value.items()
                }
            if isinstance(value, list):
                return [replace(item, (*path, index)) for index, item in enumerate(value)]
            return fill_text(value, path)

        return dataclasses.replace(self.document, data=replace(self.document.data, ()))

    def locate(self, path: Sequence[str | int]) -> str:
        """Return ``file:line`` of a path in the document."""
        return f"{self.document.file}:{self.document.line(path)}"


def load_scenarios(
    paths: Sequence[Path] = (), is_wanted: Callable[[str], bool] | None = None
) -> list[LoadedScenario]:
    """Read scenario files and folders (default: all shipped), in the order of their ids.

    What is not a scenario in a folder (a driver profile, a manifest) is passed over, and the files
    of ids that are not ``wanted`` are not read. The UsageError names every file, line and path that
    is wrong.
    """
    loaded_by_id: dict[str, LoadedScenario] = {}
    problems: list[str] = []
    read_files: set[Path] = set()
    for file, below in _list_files(paths or _list_shipped_folders()):
        identity = _find_identity(file, below)
        if file.resolve() in read_files or (is_wanted is not None and not is_wanted(identity)):
            continue
        read_files.add(file.resolve())
        try:
            loaded = load_file(file, below)
        except InvalidDocumentError as error:
            problems += error.problems
            continue
        except UsageError as error:
            problems.append(str(error))
            continue
        if loaded is None:
            continue
        if identity in loaded_by_id:
            problems.append(
                f"{file}:1: id {identity!r} is used by {loaded_by_id[identity].document.file} too;"
                " rename one of them"
            )
        loaded_by_id[identity] = loaded
    if problems:
        raise InvalidDocumentError(problems)
    return [loaded_by_id[key] for key in sorted(loaded_by_id)]


def find_shipped(identity: str) -> LoadedScenario | None:
    """Return the shipped scenario of an id, and read no other; None: there is none."""
    place = _list_shipped_files().get(identity)
    return load_file(*place) if place is not None else None


@cache
def _list_shipped_files() -> dict[str, tuple[Path, Path | None]]:
    """Return id -> file, and the folder in which it was found."""
    places = _list_files(_list_shipped_folders())
    return {_find_identity(file, below): (file, below) for file, below in places}


def _list_shipped_folders() -> list[Path]:
    folders = (scenarios_dir() / name for name in SCENARIO_FOLDERS)
    return [folder for folder in folders if folder.is_dir()]


def _list_files(paths: Iterable[Path]) -> Iterator[tuple[Path, Path | None]]:
    """Yield files, each with the folder in which it was found; None for one that is named."""
    for path in paths:
        check_path(path)
        if path.is_dir():
            yield from ((file, path) for file in yaml_files(path))
        else:
            yield path, None


def check_path(path: Path) -> None:
    """Raise UsageError if there is nothing at a path."""
    try:
        path.stat()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        if isinstance(error, FileNotFoundError):
            reason = "no such file or folder"
        raise UsageError(f"{cut(str(path), 200)}: {reason}; check the path") from None


def _find_identity(file: Path, below: Path | None) -> str:
    """Return the public id: the path below ``scenarios/`` without suffix.

    For a file elsewhere it is the path below the folder that was given, or the bare name.
    """
    resolved = file.resolve()
    named = [parent for parent in resolved.parents if parent.name == "scenarios"]
    for base in (*named, *([below.resolve()] if below is not None else [])):
        if resolved.is_relative_to(base):
            return str(resolved.relative_to(base).with_suffix(""))
    return file.stem


def load_file(file: Path, below: Path | None) -> LoadedScenario | None:
    """Return the scenario in a file; None if it was found in a folder and is none.

    Raises UsageError.
    """
    try:
        state = file.stat()
    except OSError:
        return _load(file, file.stem, named=True)  # says what is wrong
    file_state = (state.st_ino, state.st_mtime_ns, state.st_size)
    return _load_cached(
        file.absolute(), file, _find_identity(file, below), below is None, file_state
    )


def _load(file: Path, identity: str, *, named: bool) -> LoadedScenario | None:
    documents = read_documents(file)
    if not named and documents and not any(map(_may_be_scenario, documents)):
        return None
    document = expand_document(one_document(documents, "scenario", file))
    scenario = check_scenario(document)
    digest = document_digest(document.data)
    return LoadedScenario(identity, scenario, document, digest)


@lru_cache(maxsize=2048)
def _load_cached(
    _place: Path, file: Path, identity: str, named: bool, _state: tuple[int, int, int]
) -> LoadedScenario | None:
    """Keep what was read: to check a corpus takes seconds, and a process may need it repeatedly.

    ``_place`` distinguishes a relative path in another folder, ``_state`` a file that changed.
    """
    return _load(file, identity, named=named)


def _may_be_scenario(document: Document) -> bool:
    """Return whether a document is a scenario, or one that names its kind wrongly."""
    return is_own(document) and document.data.get("kind") not in {*USES} - {"Scenario"}
