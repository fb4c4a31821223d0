"""What the command lines of this repository share: options made of tables, and their help."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from kube.base.options import Option, build_options, list_options

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
                name = _TYPE.sub(lambda match: f" {_METAVARS.get(match[1], match[1])}", name)
            groups.setdefault(group, []).append((name, text))
        for group in sorted(groups, key=lambda name: (name != "Arguments", name == "Options")):
            with formatter.section(group):
                formatter.write_dl(groups[group])


def add_options(
    parameter: str,
    table: type[Any],
    only: Iterable[str] = (),
    *,
    variables: bool = False,
    **fixed: Any,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each field of a table; the command gets them as one value.

    Args:
        parameter: name of the command's parameter, which gets an instance of ``table``.
        only: names of the fields that the command offers; () means all of them.
        variables: whether an option can also be given by an environment variable of its field's
            name: ``--node-name`` by ``NODE_NAME``.
        fixed: fields that the command decides itself.
    """
    names = set(only)
    options = [option for option in list_options(table) if not names or option.name in names]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        declared_parameters = inspect.signature(command, eval_str=True).parameters

        def call(**arguments: Any) -> None:
            values = {option.name: arguments.pop(option.name) for option in options}
            command(**arguments, **{parameter: build_options(table, values, **fixed)})

        parameters = []
        for name, declared in declared_parameters.items():
            if name == parameter:
                parameters += [_make_parameter(option, variables) for option in options]
            else:
                parameters.append(declared.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        # typer reads a command by its signature and annotations, and takes its help from __doc__.
        call.__name__, call.__doc__ = command.__name__, command.__doc__
        call.__annotations__ = {declared.name: declared.annotation for declared in parameters}
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return call

    return decorate


def _make_parameter(option: Option, variables: bool) -> inspect.Parameter:
    """Make the parameter of which typer makes the option of a command."""
    spec = option.spec
    value_type: Any = option.type
    if option.repeated and option.choices:  # typer takes a Literal, but no list of one
        value_type = _make_enum(option)
    annotation, default = value_type, option.default
    if default is ...:
        default = inspect.Parameter.empty
    elif option.repeated or spec.convert or option.default is None:
        annotation, default = (list[value_type] if option.repeated else value_type) | None, None
    flag = f"{option.flag}/--no-{option.flag[2:]}" if default is True else option.flag
    declaration = typer.Option(
        *[flag, *([spec.short] if spec.short else [])],
        help=spec.help,
        metavar=spec.metavar or None,
        rich_help_panel=spec.group or None,
        envvar=spec.variable or (option.name.upper() if variables else None),
        max=spec.maximum,
        callback=_make_callback(spec.check) if spec.check else None,
    )
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[annotation, declaration],
    )


def _make_callback(check: Callable[[Any], None]) -> Callable[[Any], Any]:
    """Make a callback by which typer refuses a value with the option's name and the usage."""

    def refuse(value: Any) -> Any:
        try:
            check(value)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
        return value

    return refuse


def _make_enum(option: Option) -> type[StrEnum]:
    members = {choice: choice for choice in option.choices}
    enum: type[StrEnum] = StrEnum(option.name, members)  # type: ignore[misc]
    return enum
