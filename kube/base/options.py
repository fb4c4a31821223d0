"""Options as data, so that every command line, and pytest, makes its options of one table.

A dataclass is a table of options: what :func:`option_field` notes at a field describes its option.
Command lines (`kube.base.commandline`) and pytest derive their options from these fields, and get
an instance back. This module imports almost nothing, because pytest loads it in every session.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """Describes the option that sets a dataclass field; see :func:`option_field`.

    Attributes:
        help: one or two sentences; a command line adds the default.
        group: the heading under which a command line's help lists it; "" is the last one.
        flag: with dashes; "" is the field's name with dashes.
        short: ``-k``; "" is none. For command lines only: pytest uses single letters itself.
        metavar: stands for the value in the help; "" derives it from the type.
        given_as: type of the value as it is given, where that is not the field's own type.
        convert: makes the field's value of what was given (a tuple where it is repeated).
        check: raises ValueError for a value that a command line refuses while it reads it.
        variable: environment variable in place of the one that a command line derives.
        maximum: the largest number; None is no limit.
        places: where the option has an effect; () is everywhere.
    """

    help: str
    group: str = ""
    flag: str = ""
    short: str = ""
    metavar: str = ""
    given_as: Any = None
    convert: Callable[[Any], Any] | None = None
    check: Callable[[Any], None] | None = None
    variable: str = ""
    maximum: int | None = None
    places: tuple[str, ...] = ()


def option_field(
    default: Any,
    text: str,
    group: str = "",
    *,
    flag: str = "",
    short: str = "",
    metavar: str = "",
    given_as: Any = None,
    convert: Callable[[Any], Any] | None = None,
    check: Callable[[Any], None] | None = None,
    variable: str = "",
    maximum: int | None = None,
    places: tuple[str, ...] = (),
) -> Any:
    """Make a dataclass field with an option, as :class:`OptionSpec` describes it.

    ``default``: ``...`` means that the option is required; ``{}`` is made anew for each instance.
    """
    spec = OptionSpec(
        text,
        group,
        flag=flag,
        short=short,
        metavar=metavar,
        given_as=given_as,
        convert=convert,
        check=check,
        variable=variable,
        maximum=maximum,
        places=places,
    )
    metadata = {OptionSpec: spec}
    if default is ...:
        return dataclasses.field(metadata=metadata)
    if default == {}:
        return dataclasses.field(default_factory=dict, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


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
    spec: OptionSpec

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that can be given; () where any can."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()


def list_options(table: type[Any]) -> tuple[Option, ...]:
    """Return the options among the fields of a dataclass, in the order of its fields."""
    hints = get_type_hints(table)
    options = []
    for field in dataclasses.fields(table):
        spec = field.metadata.get(OptionSpec)
        if spec is None:
            continue
        value_type, repeated = _read_type(spec.given_as or hints[field.name])
        default = field.default
        if default is dataclasses.MISSING:
            default = ... if field.default_factory is dataclasses.MISSING else {}
        flag = spec.flag or "--" + field.name.replace("_", "-")
        options.append(Option(field.name, flag, value_type, repeated, default, spec))
    return tuple(options)


def build_options(table: type[T], values: Mapping[str, Any], **fixed: Any) -> T:
    """Make an instance of a dataclass of what a user gave.

    Args:
        values: field name -> value; None and an empty list mean that the option was not given.
        fixed: fields that are no options, or that the caller decides.

    Raises whatever ``convert`` of an option raises for a value that it refuses.
    """
    converted: dict[str, Any] = {}
    for option in list_options(table):
        value = values.get(option.name)
        if option.repeated and value is not None:
            value = tuple(value)
        if value is None or value == ():
            continue
        converted[option.name] = option.spec.convert(value) if option.spec.convert else value
    return table(**converted | fixed)


def _read_type(hint: Any) -> tuple[Any, bool]:
    """Return the type of one value, and whether there may be several."""
    if get_origin(hint) in {Union, UnionType}:
        [hint] = [member for member in get_args(hint) if member is not type(None)]
    if get_origin(hint) is tuple:
        return get_args(hint)[0], True
    return hint, False
