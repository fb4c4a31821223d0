"""Command-line options that are made from tables of options, and those that commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from conformance.options import Option, from_given, options_of

T = TypeVar("T")

Paths = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH", help="Scenario files or folders. [default: all shipped]"),
]
TextOrJson = Annotated[
    Literal["text", "json"], typer.Option("--output", "-o", help="What to print.")
]


def takes(
    parameter: str, table: type[Any], only: Iterable[str] = (), **fixed: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each row of a table; it gets them as one value.

    Args:
        parameter: of the command, which gets an instance of ``table``.
        only: names of its fields that the command offers; () is all of them.
    """
    rows = [row for row in options_of(table) if not only or row.name in set(only)]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters

        def call(**given: Any) -> None:
            chosen = {row.name: given.pop(row.name) for row in rows}
            command(**given, **{parameter: from_given(table, chosen, **fixed)})

        parameters = []
        for name, value in own.items():
            if name == parameter:
                parameters += [_parameter(row) for row in rows]
            else:
                parameters.append(value.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        call.__name__, call.__doc__ = command.__name__, command.__doc__
        call.__annotations__ = {item.name: item.annotation for item in parameters}
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return call

    return decorate


def _parameter(row: Option) -> inspect.Parameter:
    one: Any = row.type
    if row.repeated and row.choices:  # typer takes a Literal, but no list of one
        one = _enum(row)
    kind, default = one, row.default
    if default is ...:
        default = inspect.Parameter.empty
    elif row.repeated or row.given.convert or row.default is None:
        kind, default = (list[one] if row.repeated else one) | None, None
    flags = [row.flag, *([row.given.short] if row.given.short else [])]
    about = typer.Option(
        *flags,
        help=row.given.help,
        metavar=row.given.metavar or None,
        rich_help_panel=row.given.group or None,
    )
    return inspect.Parameter(
        row.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, about]
    )


def _enum(row: Option) -> type[StrEnum]:
    members = {choice: choice for choice in row.choices}
    made: type[StrEnum] = StrEnum(row.name, members)  # type: ignore[misc]
    return made
