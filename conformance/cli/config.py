"""Options from a file in the repository: ``dra-conformance.toml``, or a table of pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from conformance.cli.output import print_progress
from conformance.digest import text_digest
from conformance.scenario.documents.validate import hint
from kube.base.errors import UsageError
from kube.base.files import read_regular
from kube.base.text import cut

OWN_FILE = Path("dra-conformance.toml")
SHARED_FILE = Path("pyproject.toml")
TABLE = "dra-conformance"
"""The table's name below ``[tool]`` in pyproject.toml."""

MAX_BYTES = 1 << 20

_MAX_DOTS = 1000
"""In a line. tomllib keeps every beginning of a dotted key: the square of its length."""

NOT_IN_FILES = ("config", "no-config", "dry-run", "resume", "help")


def _apply_file(ctx: typer.Context, named_file: Path | None) -> Path | None:
    """Make what the file says the defaults of the command; what is given there wins.

    Returns the file that was used.
    Raises UsageError: it cannot be read, is invalid TOML, or has an unknown option.
    """
    if ctx.params.get("no_config"):
        return named_file  # both are refused by the command, in whatever order they come
    for file in [named_file] if named_file is not None else [OWN_FILE, SHARED_FILE]:
        if named_file is None and not file.exists():
            continue
        text = _read_text(file)
        table = _parse_table(file, text, shared=file.name == SHARED_FILE.name)
        if table is not None:
            ctx.default_map = _make_defaults(ctx, file, text, table)
            names = ", ".join(table) or "no options"
            print_progress(f"options of {file}: {cut(names, 200)}")
            return file
    if named_file is not None:
        raise UsageError(
            f"{named_file}: has no table [tool.{TABLE}]; add one, or leave --config out"
        )
    return None


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        is_eager=True,
        callback=_apply_file,
        metavar="FILE",
        help=f"TOML file with options. [default: {OWN_FILE}, else [tool.{TABLE}] in {SHARED_FILE}]",
    ),
]
NoConfig = Annotated[
    bool, typer.Option("--no-config", is_eager=True, help="Do not read options from a file.")
]


def record_config(file: Path | None) -> dict[str, str]:
    """Return what the result file keeps of a file with options; {} where none was used."""
    return {"file": file.name, "digest": text_digest(_read_text(file))} if file is not None else {}


def _read_text(file: Path) -> str:
    try:
        return read_regular(file, MAX_BYTES).decode()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file}: is not UTF-8, which TOML requires") from None


def _parse_table(file: Path, text: str, *, shared: bool) -> Mapping[str, Any] | None:
    """Return the options in a file; None where it is ``shared`` and has none for the suite.

    Raises UsageError: it is no TOML, or has no table there.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > _MAX_DOTS:
            raise UsageError(
                f"{file}:{number}: has more than {_MAX_DOTS} dots; give it in several lines"
            )
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: a number of thousands of digits
        raise UsageError(f"{file}: is not valid TOML: {cut(str(error), 200)}") from None
    if not shared:
        return document
    tool = document.get("tool")
    table = tool.get(TABLE) if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UsageError(f"{file}: tool.{TABLE} must be a table of options")
    return table


def _make_defaults(
    ctx: typer.Context, file: Path, text: str, table: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the file's value of each parameter that it sets, as text. Raises UsageError."""
    parameters: dict[str, Any] = {}
    for parameter in ctx.command.params:
        flags = [flag for flag in parameter.opts if flag.startswith("--")] or parameter.opts
        parameters |= dict.fromkeys((flag.lstrip("-") for flag in flags), parameter)
    for name in NOT_IN_FILES:
        parameters.pop(name, None)
    defaults: dict[str, Any] = {}
    for name, value in table.items():
        where = f"{file}:{_find_line(text, name)}: {name}"
        if name not in parameters:
            raise UsageError(f"{where}: is not an option of `run`; {hint(name, parameters)}")
        parameter = parameters[name]
        several = parameter.nargs == -1 or bool(getattr(parameter, "multiple", False))
        switch = bool(getattr(parameter, "is_flag", False))
        values = value if isinstance(value, list) else [value]
        if (isinstance(value, list) and not several) or not all(map(_is_plain, values)):
            kind = "a list of strings" if several else "one string, number or boolean"
            raise UsageError(f"{where}: must be {kind}")
        if any(isinstance(item, bool) is not switch for item in values):
            raise UsageError(
                f"{where}: must be {'true or false' if switch else 'a string or a number'}"
            )
        texts = [item if isinstance(item, bool) else str(item) for item in values]
        defaults[str(parameter.name)] = texts if several else texts[0]
    return defaults


def _is_plain(value: object) -> bool:
    if isinstance(value, int):
        return value.bit_length() <= 64  # Python does not write down one of thousands of digits
    return isinstance(value, str | float)


def _find_line(text: str, name: str) -> int:
    """Return the line of a key; 1 where that is not seen, as for one that is written in quotes."""
    match = re.search(rf"^[ \t]*[\"']?{re.escape(name)}[\"']?[ \t]*=", text, re.MULTILINE)
    return text.count("\n", 0, match.end()) + 1 if match else 1
