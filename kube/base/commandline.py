"""The help of a command, the same in every program of this repository."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

_METAVARS = {
    "str": "TEXT",
    "path": "PATH",
    "Path": "PATH",
    "int": "INTEGER",
    "int range": "INTEGER",
    "float": "NUMBER",
    "float range": "NUMBER",
}
_TYPE = re.compile(r" <(?:list\[)?([^\[\]<>]*)\]?>")


class HelpCommand(TyperCommand):
    """A command whose help lists options by their ``rich_help_panel``; those without one last."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for the arguments and for each group of options."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is None:
                continue
            name, text = record
            if parameter.param_type_name == "argument":
                group, name = "Arguments", _TYPE.sub("", name)
            else:
                group = getattr(parameter, "rich_help_panel", None) or "Options"
                name = _TYPE.sub(lambda found: f" {_METAVARS.get(found[1], found[1])}", name)
            groups.setdefault(group, []).append((name, text))
        for group in sorted(groups, key=lambda name: (name != "Arguments", name == "Options")):
            with formatter.section(group):
                formatter.write_dl(groups[group])
