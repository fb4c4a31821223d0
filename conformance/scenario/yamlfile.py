"""Read YAML documents with the line of every value, and without surprises.

Files come from strangers: only safe tags, no duplicate keys, no aliases that explode, bounded size
and depth. The line of each path makes errors point at the place (``file:line``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from conformance.errors import UsageError

MAX_BYTES = 1 << 20
MAX_DEPTH = 64
MAX_VALUES = 100_000

PathTuple = tuple[str | int, ...]


class YamlError(UsageError):
    """A file is not usable YAML; the message begins with ``file:line``."""


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document: plain data, and the line (from 1) of every path in it."""

    file: Path
    data: Any
    lines: dict[PathTuple, int]

    def line(self, path: Sequence[str | int]) -> int:
        """The line of a path, or of the nearest thing that contains it."""
        key = tuple(path)
        while key and key not in self.lines:
            key = key[:-1]
        return self.lines.get(key, 1)


def dotted(path: Sequence[str | int]) -> str:
    """A path as people write it: ``$.spec.steps[2].expect``."""
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def read_documents(file: Path) -> list[Document]:
    """Read every document of a YAML file; empty documents are left out.

    Raises:
        YamlError: the file cannot be read, is too large, or is not plain YAML.
    """
    try:
        if file.stat().st_size > MAX_BYTES:
            raise YamlError(f"{file}:1: larger than {MAX_BYTES} bytes; split the file")
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise YamlError(f"{file}: cannot be read: {error.strerror}; check the path") from None
    except UnicodeDecodeError as error:
        raise YamlError(f"{file}:1: is not UTF-8 text (byte {error.start})") from None
    return list(parse_documents(text, file))


def parse_documents(text: str, file: Path) -> Iterator[Document]:
    """Like :func:`read_documents`, from text; ``file`` is only used in messages."""
    try:
        for node in yaml.compose_all(text, Loader=yaml.SafeLoader):
            builder = _Builder(file)
            data = builder.build(node, ())
            if data is not None:
                yield Document(file, data, builder.lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise YamlError(f"{file}:{line}: is not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise YamlError(f"{file}:1: is not YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise YamlError(f"{file}:1: nested too deeply") from None


class _Builder:
    """Turns a composed node into plain data, counting as it goes so that aliases cannot explode."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.lines: dict[PathTuple, int] = {}
        self._values = 0
        self._scalars = yaml.constructor.SafeConstructor()

    def build(self, node: yaml.Node | None, path: PathTuple) -> Any:
        if node is None:
            return None
        line = node.start_mark.line + 1
        self.lines[path] = line
        self._values += 1
        if self._values > MAX_VALUES:
            raise YamlError(f"{self.file}:{line}: more than {MAX_VALUES} values")
        if len(path) > MAX_DEPTH:
            raise YamlError(f"{self.file}:{line}: nested deeper than {MAX_DEPTH}")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, line)

    def _mapping(self, node: yaml.MappingNode, path: PathTuple) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is None:
                raise YamlError(f"{self.file}:{line}: a key must be plain text")
            if key in result:
                raise YamlError(f"{self.file}:{line}: {dotted((*path, key))} is given twice")
            result[key] = self.build(value_node, (*path, key))
            self.lines[(*path, key)] = line
        return result

    def _scalar(self, node: yaml.Node, line: int) -> Any:
        if node.tag == "tag:yaml.org,2002:timestamp":  # Kubernetes knows no such type
            return node.value
        try:
            value = self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError):
            raise YamlError(f"{self.file}:{line}: tag {node.tag} is not allowed here") from None
        if value is None or isinstance(value, str | int | float | bool):
            return value
        raise YamlError(f"{self.file}:{line}: a value of type {node.tag} is not allowed here")
