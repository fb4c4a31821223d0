"""Read YAML documents with the line of every value, and without surprises.

Files are not trusted: only safe tags, no duplicate keys, no aliases that explode, bounded size
and depth. The line of each path makes errors point at the place (``file:line``).
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from kube.base.errors import UsageError
from kube.base.files import read_regular
from kube.base.strictyaml import BoundedLoader, BoundsError
from kube.base.yamlvalues import TEXT_TAGS, TextLines, read_values

YAML = (".yaml", ".yml")
MAX_BYTES = 3 << 20
"""Of a file: what an API server reads of a request; definitions of resources come near to it."""

MAX_DEPTH = 64
MAX_VALUES = 100_000
_MOST_REPEATED = 1 << 20  # Characters of all aliases, if each stands for the whole text.
MAX_TEXT = 4 << 20  # Characters of all texts of a document, each counted wherever it stands.

PathTuple = tuple[str | int, ...]


class YamlError(UsageError):
    """A file is not usable YAML; the message begins with ``file:line``."""


Severity = Literal["error", "warning"]


class Problem(NamedTuple):
    """Something to mend at a path of a document; a ``warning`` may be meant as it is."""

    path: PathTuple
    message: str
    severity: Severity = "error"


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document: plain data, and the line (from 1) of every path in it.

    ``origins``: path in ``data`` -> path of what the author wrote for it, where these differ.
    """

    file: Path
    data: Any
    lines: Mapping[PathTuple, int]
    origins: Mapping[PathTuple, PathTuple] = field(default_factory=dict)

    def line(self, path: Sequence[str | int]) -> int:
        """Return the line of a path, or of the nearest thing that contains it."""
        key = tuple(path)
        while key and key not in self.lines:
            key = key[:-1]
        return self.lines.get(key, 1)

    def tell(self, problem: Problem) -> str:
        """Return a problem of this document as a line: ``file:line: $.path: what to write``."""
        warning = "warning: " if problem.severity == "warning" else ""
        where = (
            f"{self.file}:{self.line(problem.path)}: {format_path(self._find_origin(problem.path))}"
        )
        return f"{where}: {warning}{problem.message}"

    def _find_origin(self, path: PathTuple) -> PathTuple:
        for end in range(len(path), -1, -1):
            if path[:end] in self.origins:
                return (*self.origins[path[:end]], *path[end:])
        return path


def format_path(path: Sequence[str | int]) -> str:
    """Return a path as people write it: ``$.spec.steps[2].expect``."""
    return "$" + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)


def as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def list_mappings(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the mappings of a list with their indices; nothing for anything else."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict):
                yield index, item


def walk(value: Any, path: PathTuple = ()) -> Iterator[tuple[PathTuple, Any]]:
    """Yield a value of a document and all that is in it, each with its path, from outside in."""
    waiting = [(path, value)]
    while waiting:
        path, value = waiting.pop()
        yield path, value
        waiting += [((*path, key), item) for key, item in list_items(value)][::-1]


def list_items(value: Any) -> Iterable[tuple[str | int, Any]]:
    """Return keys and values of a mapping, indices and elements of a list; nothing for others."""
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def read_documents(file: Path) -> list[Document]:
    """Return the documents of a YAML file but empty ones. Raises YamlError if it is not usable."""
    try:
        return decode_documents(read_regular(file, MAX_BYTES), file)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise YamlError(f"{file}:1: larger than {MAX_BYTES} bytes; split the file") from None
        raise YamlError(f"{file}: cannot be read: {error.strerror}; check the path") from None


def decode_documents(data: bytes, file: Path) -> list[Document]:
    """Return documents as :func:`read_documents` does, from bytes; ``file`` is for messages."""
    if len(data) > MAX_BYTES:
        raise YamlError(f"{file}:1: larger than {MAX_BYTES} bytes; split the file")
    try:
        return list(parse_documents(data.decode("utf-8"), file))
    except UnicodeDecodeError as error:
        raise YamlError(f"{file}:1: is not UTF-8 text (byte {error.start})") from None


def yaml_files(
    folder: Path,
    suffixes: Sequence[str] = YAML,
    exclude: Sequence[str] = (),
    report: Callable[[YamlError], None] | None = None,
) -> list[Path]:
    """Return the files below a folder whose names end so, in the order of their paths.

    Hidden folders (``.git``, ``.venv``) are left out, and what the globs of ``exclude`` match: a
    path below ``folder``, or a name. A folder that cannot be read is a YamlError, not left out in
    silence; with ``report`` that is called for it, and the others are listed.
    """

    def refuse(error: OSError) -> None:
        text = f"{error.filename}: cannot be read: {error.strerror}; check its rights"
        if report is None:
            raise YamlError(text)
        report(YamlError(text))

    def is_included(parent: str, name: str) -> bool:
        if not exclude:
            return True
        below = Path(parent, name).relative_to(folder).as_posix()
        return not any(fnmatchcase(text, glob) for text in (below, name) for glob in exclude)

    files: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [
            name for name in folders if not name.startswith(".") and is_included(parent, name)
        ]
        matching_names = [name for name in names if name.endswith(tuple(suffixes))]
        files += [Path(parent, name) for name in matching_names if is_included(parent, name)]
    return sorted(files)


def parse_documents(text: str, file: Path) -> Iterator[Document]:
    """Yield documents as :func:`read_documents` does, from text; ``file`` is for messages."""
    try:
        values = read_values(text, MAX_VALUES, MAX_DEPTH, _MOST_REPEATED // (len(text) + 1))
    except yaml.YAMLError:
        yield from _compose_documents(text, file)
        return
    lines = TextLines(text)
    for index, data in enumerate(values):
        if data is not None:
            yield Document(file, data, LazyLines(partial(lines.list_lines, index)))


class LazyLines(Mapping[PathTuple, int]):
    """The line of every path, found when the first is asked for: most documents are right."""

    def __init__(self, find_lines: Callable[[], Mapping[PathTuple, int]]) -> None:
        self._find_lines = find_lines

    @cached_property
    def _by_path(self) -> Mapping[PathTuple, int]:
        return self._find_lines()

    def __getitem__(self, path: PathTuple) -> int:
        return self._by_path[path]

    def __iter__(self) -> Iterator[PathTuple]:
        return iter(self._by_path)

    def __len__(self) -> int:
        return len(self._by_path)

    def __reduce__(self) -> tuple[type[dict[PathTuple, int]], tuple[dict[PathTuple, int]]]:
        return dict, (dict(self._by_path),)  # to another process go the lines themselves


def _compose_documents(text: str, file: Path) -> Iterator[Document]:
    """Yield documents of a text with something unusual, or say what it is, by PyYAML's nodes."""
    try:
        for node in _compose_nodes(text):
            builder = _Builder(file)
            data = builder.build(node, ())
            if data is not None:
                yield Document(file, data, builder.lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        kind = "" if isinstance(error, BoundsError) else "is not YAML: "
        raise YamlError(f"{file}:{line}: {kind}{error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise YamlError(f"{file}:1: is not YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise YamlError(f"{file}:1: nested too deeply") from None


def _compose_nodes(text: str) -> Iterator[yaml.Node]:
    try:
        nodes = list(yaml.compose_all(text, Loader=BoundedLoader))
    except BoundsError:
        raise
    except yaml.YAMLError:  # read again for the message, which names the line
        return yaml.compose_all(text, Loader=yaml.SafeLoader)
    return iter(nodes)


class _Builder:
    """Turns a composed node into plain data, counting as it goes so that aliases cannot explode."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.lines: dict[PathTuple, int] = {}
        self._values = 0
        self._characters = 0
        self._scalars = yaml.constructor.SafeConstructor()

    def build(self, node: yaml.Node | None, path: PathTuple) -> Any:
        if node is None:
            return None
        line = node.start_mark.line + 1
        self.lines[path] = line
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._error(line, f"more than {MAX_VALUES} values")
        if len(path) > MAX_DEPTH:
            raise self._error(line, f"nested deeper than {MAX_DEPTH}")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, line)

    def _error(self, line: int, text: str) -> YamlError:
        return YamlError(f"{self.file}:{line}: {text}")

    def _mapping(self, node: yaml.MappingNode, path: PathTuple) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is None:
                raise self._error(line, "a key must be plain text")
            self._check_text(key, line)
            if key in result:
                raise self._error(line, f"{format_path((*path, key))} is given twice")
            result[key] = self.build(value_node, (*path, key))
            self.lines[(*path, key)] = line
        return result

    def _scalar(self, node: yaml.Node, line: int) -> Any:
        try:
            is_text = node.tag in TEXT_TAGS
            value = node.value if is_text else self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError, LookupError, ArithmeticError, AttributeError):
            text = f"{_describe_tag(node)} is not allowed here, or does not fit {node.value!r:.40}"
            raise self._error(line, text) from None
        self._check_number(value, line)
        if isinstance(value, str):
            self._check_text(value, line)
        if value is None or isinstance(value, str | int | float | bool):
            return value
        raise self._error(line, f"a value of type {_describe_tag(node)} is not allowed here")

    def _check_number(self, value: object, line: int) -> None:
        """Refuse what JSON (infinity) or Kubernetes (more than 64 bits) has no number for."""
        if isinstance(value, float) and not math.isfinite(value):
            raise self._error(line, f"{value} is not a number that Kubernetes accepts")
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise self._error(line, "the number does not fit into 64 bits; quote it if it is text")

    def _check_text(self, text: str, line: int) -> None:
        """Refuse half of a surrogate pair, which YAML can write and which is not a character."""
        self._characters += len(text)
        if self._characters > MAX_TEXT:
            raise self._error(line, f"more than {MAX_TEXT} characters, with all aliases")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise self._error(line, f"{text!r:.40} is not valid Unicode") from None


def _describe_tag(node: yaml.Node) -> str:
    return f"tag {node.tag.replace('tag:yaml.org,2002:', '!!')}"
