"""Options as data, so that the command line and pytest offer the same ones.

The annotation of a dataclass field describes the option. The command line and pytest create their
options from these fields and get an instance back. This module imports almost nothing, because
pytest loads it in every session.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Given:
    """Describes a dataclass field that can be set by an option; see :func:`given`.

    Attributes:
        help: one or two sentences; the command line adds the default.
        group: the heading under which the command line's help lists it; "" is the last one.
        flag: with dashes; "" is the field's name with dashes.
        short: ``-k``; "" is none. For the command line only: pytest uses single letters itself.
        metavar: stands for the value in the help; "" derives it from the type.
        type: of the value on the command line, where that is not the field's own type.
        convert: from that (a tuple where it is repeated) to the field's value.
        places: where the option has an effect; () is everywhere.
    """

    help: str
    group: str = ""
    flag: str = ""
    short: str = ""
    metavar: str = ""
    type: Any = None
    convert: Callable[[Any], Any] | None = None
    places: tuple[str, ...] = ()


def given(default: Any, text: str, group: str = "", **more: Any) -> Any:
    """A dataclass field with an option; ``...`` as the default means that it is required.

    ``more``: further attributes of :class:`Given`.
    """
    about: dict[str, Any] = {"metadata": {Given: Given(text, group, **more)}}
    if default is ...:
        return dataclasses.field(**about)
    if default == {}:
        return dataclasses.field(default_factory=dict, **about)
    return dataclasses.field(default=default, **about)


@dataclass(frozen=True, slots=True)
class Option:
    """A field of a dataclass as an option.

    Attributes:
        flag: ``--feature-gate``.
        type: of one value: str, int, bool (a switch without a value), Path, or a Literal.
        repeated: may be given several times.
        default: the field's; ``...`` where it must be given.
    """

    name: str
    flag: str
    type: Any
    repeated: bool
    default: Any
    given: Given

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that can be given; () where any can."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()


def options_of(table: type[Any]) -> tuple[Option, ...]:
    """The options among the fields of a dataclass, in their order, inherited ones last."""
    hints = get_type_hints(table)
    own = vars(table)["__annotations__"]
    found = []
    for item in sorted(dataclasses.fields(table), key=lambda item: item.name not in own):
        about = item.metadata.get(Given)
        if about is None:
            continue
        kind, repeated = _value_type(about.type or hints[item.name])
        default = item.default
        if default is dataclasses.MISSING:
            default = ... if item.default_factory is dataclasses.MISSING else {}
        flag = about.flag or "--" + item.name.replace("_", "-")
        found.append(Option(item.name, flag, kind, repeated, default, about))
    return tuple(found)


def from_given(table: type[T], given: Mapping[str, Any], **rest: Any) -> T:
    """An instance of a dataclass from what a user gave.

    Args:
        given: field name -> value; None and an empty list are "not given".
        rest: fields that are no options, or that the caller decides.

    Raises UsageError: what ``convert`` of an option refuses.
    """
    values: dict[str, Any] = {}
    for item in options_of(table):
        value = given.get(item.name)
        if item.repeated and value is not None:
            value = tuple(value)
        if value is None or value == ():
            continue
        values[item.name] = item.given.convert(value) if item.given.convert else value
    return table(**values | rest)


def _value_type(hint: Any) -> tuple[Any, bool]:
    """The type of one value, and whether there may be several."""
    if get_origin(hint) in {Union, UnionType}:
        [hint] = [part for part in get_args(hint) if part is not type(None)]
    if get_origin(hint) is tuple:
        return get_args(hint)[0], True
    return hint, False
