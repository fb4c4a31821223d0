"""Find scenario files, read them, and hand them out with their public ids."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from conformance.data import scenarios_dir
from conformance.digest import document_digest
from conformance.scenario.documents.validate import (
    USES,
    InvalidDocumentError,
    is_own,
    one_document,
    validated,
)
from conformance.scenario.documents.yamlfile import (
    Document,
    PathTuple,
    Problem,
    read_documents,
    yaml_files,
)
from conformance.scenario.driver.variables import Variables, substitute
from conformance.scenario.lint.scenarios import checked_scenario
from conformance.scenario.model import Scenario
from conformance.scenario.short.expand import expanded
from kube.base.errors import UsageError
from kube.base.text import cut

SCENARIO_FOLDERS = ("core", "extended", "regressions")


@dataclass(frozen=True, slots=True)
class LoadedScenario:
    """A scenario with where it came from.

    Attributes:
        id: path below the scenario root without suffix, for example ``core/isolation-container``.
        document: in full, see :func:`conformance.scenario.short.expand.expanded`.
        digest: ``sha256:`` over the document's canonical JSON.
    """

    id: str
    scenario: Scenario
    document: Document
    digest: str

    def bind(self, variables: Variables) -> Scenario:
        """The scenario with its variables replaced. Raises UsageError."""
        return validated(Scenario, self.bound(variables))

    def bound(self, variables: Variables) -> Document:
        """The document with every ``${...}`` replaced. Raises UsageError: a variable is unknown."""

        def text(value: Any, path: PathTuple) -> Any:
            try:
                return substitute(value, variables.value)
            except UsageError as error:
                raise UsageError(self.document.tell(Problem(path, str(error)))) from None

        def replace(value: Any, path: PathTuple) -> Any:
            if isinstance(value, dict):
                return {
                    text(key, (*path, key)): replace(item, (*path, key))
                    for key, item in value.items()
                }
            if isinstance(value, list):
                return [replace(item, (*path, index)) for index, item in enumerate(value)]
            return text(value, path)

        return dataclasses.replace(self.document, data=replace(self.document.data, ()))

    def where(self, path: Sequence[str | int]) -> str:
        """``file:line`` of a path in the document."""
        return f"{self.document.file}:{self.document.line(path)}"


def load_scenarios(
    paths: Sequence[Path] = (), wanted: Callable[[str], bool] | None = None
) -> list[LoadedScenario]:
    """Read scenario files and folders (default: all shipped), in the order of their ids.

    What is not a scenario in a folder (a driver profile, a manifest) is passed over, and the files
    of ids that are not ``wanted`` are not read. The UsageError names every file, line and path that
    is wrong.
    """
    found: dict[str, LoadedScenario] = {}
    problems: list[str] = []
    seen: set[Path] = set()
    for file, below in _files(paths or _shipped()):
        identity = _identity(file, below)
        if file.resolve() in seen or (wanted is not None and not wanted(identity)):
            continue
        seen.add(file.resolve())
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
        if identity in found:
            problems.append(
                f"{file}:1: id {identity!r} is used by {found[identity].document.file} too;"
                " rename one of them"
            )
        found[identity] = loaded
    if problems:
        raise InvalidDocumentError(problems)
    return [found[key] for key in sorted(found)]


def _shipped() -> list[Path]:
    folders = (scenarios_dir() / name for name in SCENARIO_FOLDERS)
    return [folder for folder in folders if folder.is_dir()]


def _files(paths: Iterable[Path]) -> Iterator[tuple[Path, Path | None]]:
    """Files, each with the folder in which it was searched for; None for one that is named."""
    for path in paths:
        check_path(path)
        if path.is_dir():
            yield from ((file, path) for file in yaml_files(path))
        else:
            yield path, None


def check_path(path: Path) -> None:
    """See that there is something at a path. Raises UsageError."""
    try:
        path.stat()
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        if isinstance(error, FileNotFoundError):
            said = "no such file or folder"
        raise UsageError(f"{cut(str(path), 200)}: {said}; check the path") from None


def _identity(file: Path, below: Path | None) -> str:
    """The public id: the path below ``scenarios/`` without suffix.

    For a file elsewhere it is the path below the folder that was given, or the bare name.
    """
    resolved = file.resolve()
    named = [parent for parent in resolved.parents if parent.name == "scenarios"]
    for base in (*named, *([below.resolve()] if below is not None else [])):
        if resolved.is_relative_to(base):
            return str(resolved.relative_to(base).with_suffix(""))
    return file.stem


def load_file(file: Path, below: Path | None) -> LoadedScenario | None:
    """The scenario in a file; None: a folder was given, and this is none. Raises UsageError."""
    try:
        state = file.stat()
    except OSError:
        return _load(file, file.stem, named=True)  # says what is wrong
    at = (state.st_ino, state.st_mtime_ns, state.st_size)
    return _loaded(file.absolute(), file, _identity(file, below), below is None, at)


def _load(file: Path, identity: str, *, named: bool) -> LoadedScenario | None:
    documents = read_documents(file)
    if not named and documents and not any(map(_may_be_scenario, documents)):
        return None
    document = expanded(one_document(documents, "scenario", file))
    scenario = checked_scenario(document)
    digest = document_digest(document.data)
    return LoadedScenario(identity, scenario, document, digest)


@lru_cache(maxsize=2048)
def _loaded(
    _place: Path, file: Path, identity: str, named: bool, _state: tuple[int, int, int]
) -> LoadedScenario | None:
    """Keep what was read: to check a corpus takes seconds, and a process may need it repeatedly.

    ``_place`` distinguishes a relative path in another folder, ``_state`` a file that changed.
    """
    return _load(file, identity, named=named)


def _may_be_scenario(document: Document) -> bool:
    """Whether a document is a scenario, or one that names its kind wrongly."""
    return is_own(document) and document.data.get("kind") not in {*USES} - {"Scenario"}
