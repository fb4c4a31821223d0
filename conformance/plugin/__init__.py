"""The pytest plugin, an entry point to the engine: each scenario file is a test item.

Nothing happens without ``--dra-target``, so that installing the package changes no other test run;
then ``conformance.plugin.scenarios`` does the work. Until then next to nothing is imported, because
pytest imports this module in every session.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import pytest

from conformance.engine.options import RunOptions
from conformance.options import Option, options_of
from conformance.scenario.selection import Selection
from conformance.targets.opening.options import TargetOptions

PREFIX = "--dra-"
TABLES: tuple[type[Any], ...] = (TargetOptions, RunOptions, Selection)
_OPTION = re.compile(
    rf"(?<!\S)(?:{'|'.join(row.flag for table in TABLES for row in options_of(table))})(?![-\w])"
)
"""An option of the tables in a help text; ``list --features`` is none of them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The command line's options about target and run, each with ``--dra-`` before its name."""
    group = parser.getgroup("dra", "Kubernetes Dynamic Resource Allocation conformance")
    for table in TABLES:
        for row in _rows(table):
            group.addoption(PREFIX + row.flag[2:], dest=destination(row), **_argument(row))


def pytest_configure(config: pytest.Config) -> None:
    """Have scenarios collected and run where a target is named, and a driver checked in a test."""
    from conformance.plugin import drivercheck

    config.pluginmanager.register(drivercheck, "dra-conformance-driver-check")
    if config.getoption("--dra-target") is not None:
        from conformance.plugin import scenarios

        config.pluginmanager.register(scenarios, "dra-conformance-scenarios")


def _rows(table: type[Any]) -> list[Option]:
    """The options of a table but those of one letter: pytest has its own -k."""
    return [row for row in options_of(table) if row.flag.startswith("--")]


def destination(row: Option) -> str:
    return f"dra_{row.name}"


def _argument(row: Option) -> dict[str, Any]:
    """The arguments of ``add_argument`` for an option; what was not given is None."""
    text = _OPTION.sub(lambda found: PREFIX + found[0][2:], row.given.help).replace("%", "%%")
    about: dict[str, Any] = {"default": None, "help": text}
    if row.type is bool:
        return about | {"action": "store_true"}
    if row.choices:
        about["choices"] = row.choices
    elif row.type is Path:
        about["type"] = _path
    elif row.type is not str:
        about["type"] = row.type
    if row.repeated:
        about["action"] = "append"
    if row.given.metavar:
        about["metavar"] = row.given.metavar
    return about


def _path(text: str) -> Path:
    if not text:  # it would be the current folder
        raise argparse.ArgumentTypeError("the path is empty; is a shell variable unset?")
    return Path(text)


def given(config: pytest.Config, table: type[Any]) -> dict[str, Any]:
    """What the user gave of a table: field name -> value."""
    values = {row.name: config.getoption(destination(row)) for row in _rows(table)}
    return {name: value for name, value in values.items() if value is not None}
