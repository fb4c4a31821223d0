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
from conformance.scenario.selection import Selection
from conformance.targets.opening.options import TargetOptions
from kube.base.options import Option, list_options

PREFIX = "--dra-"
TABLES: tuple[type[Any], ...] = (TargetOptions, RunOptions, Selection)
_FLAGS = "|".join(option.flag for table in TABLES for option in list_options(table))
_OPTION = re.compile(rf"(?<!\S)(?:{_FLAGS})(?![-\w])")
"""An option of the tables in a help text; ``list --features`` is none of them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the command line's options about target and run, each as ``--dra-`` and its name."""
    group = parser.getgroup("dra", "Kubernetes Dynamic Resource Allocation conformance")
    for table in TABLES:
        for option in _list_long_options(table):
            name, dest = PREFIX + option.flag[2:], destination(option)
            group.addoption(name, dest=dest, **_describe_argument(option))


def pytest_configure(config: pytest.Config) -> None:
    """Register what checks a driver in a test, and what runs scenarios where a target is named."""
    from conformance.plugin import drivercheck

    config.pluginmanager.register(drivercheck, "dra-conformance-driver-check")
    if config.getoption("--dra-target") is not None:
        from conformance.plugin import scenarios

        config.pluginmanager.register(scenarios, "dra-conformance-scenarios")


def _list_long_options(table: type[Any]) -> list[Option]:
    """Return the options of a table but those of one letter: pytest has its own -k."""
    return [option for option in list_options(table) if option.flag.startswith("--")]


def destination(option: Option) -> str:
    return f"dra_{option.name}"


def _describe_argument(option: Option) -> dict[str, Any]:
    """Return the arguments of ``add_argument`` for an option; one that is not given is None."""
    text = _OPTION.sub(lambda match: PREFIX + match[0][2:], option.spec.help).replace("%", "%%")
    arguments: dict[str, Any] = {"default": None, "help": text}
    if option.type is bool:
        return arguments | {"action": "store_true"}
    if option.choices:
        arguments["choices"] = option.choices
    elif option.type is Path:
        arguments["type"] = _parse_path
    elif option.type is not str:
        arguments["type"] = option.type
    if option.repeated:
        arguments["action"] = "append"
    if option.spec.metavar:
        arguments["metavar"] = option.spec.metavar
    return arguments


def _parse_path(text: str) -> Path:
    if not text:  # it would be the current folder
        raise argparse.ArgumentTypeError("the path is empty; is a shell variable unset?")
    return Path(text)


def read_options(config: pytest.Config, table: type[Any]) -> dict[str, Any]:
    """Return what the user gave of a table: field name -> value."""
    values = {
        option.name: config.getoption(destination(option)) for option in _list_long_options(table)
    }
    return {name: value for name, value in values.items() if value is not None}
