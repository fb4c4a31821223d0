"""Replace ``${...}`` in a scenario by what the driver profile, or this run, calls things.

This is not a template language: a name stands for a value, and nothing can be computed. A text
that is nothing but one ``${...}`` becomes the value with its type (a list, a mapping).
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Any

from conformance import probe
from conformance.errors import UsageError
from conformance.scenario.profile import DriverProfile

VARIABLE = re.compile(r"\$\{([^}]*)\}")
UNCLOSED = re.compile(r"\$\{[^}]*\Z")
FIXED_NAMES = ("driver", "image", "namespace", "probe.exit", "probe.hold")
"""The variables that every scenario has, whatever the driver profile."""

SYNTHETIC_DOMAIN = "dra-conformance.dev"


class UnknownVariableError(UsageError):
    """A scenario uses a ``${...}`` that nothing defines."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = list(known)
        near = difflib.get_close_matches(name, names, n=1)
        meant = f" (did you mean ${{{near[0]}}}?)" if near else ""
        super().__init__(f"unknown variable ${{{name}}}{meant}; known are {', '.join(names)}")


def suffix(run: str, scenario_id: str) -> str:
    """Eight hex digits that tell this scenario in this run from any other."""
    return hashlib.sha256(f"{run}/{scenario_id}".encode()).hexdigest()[:8]


def namespace(unique: str) -> str:
    """The namespace of the scenario that has this suffix."""
    return f"dra-{unique}"


class Variables:
    """The names of one scenario in one run.

    Args:
        profile: of the driver whose devices are used; None in the allocation tier, where the
            scenario brings a synthetic driver with a name of its own.
        unique: from :func:`suffix`.
        image: the image that scenario pods run.
    """

    def __init__(self, profile: DriverProfile | None, unique: str, image: str) -> None:
        self._unique = unique
        self._profile = profile
        fixed: dict[str, Any] = {
            "image": image,
            "namespace": namespace(unique),
            "probe.hold": list(probe.HOLD),
            "probe.exit": list(probe.EXIT),
        }
        if profile is None:
            fixed["driver"] = f"d-{unique}.{SYNTHETIC_DOMAIN}"
        else:
            spec = profile.spec
            fixed["driver"] = spec.driver
            fixed |= {f"class.{key}": value.name for key, value in spec.classes.items()}
            fixed |= {f"attribute.{key}": value for key, value in spec.attributes.items()}
            fixed |= {f"selector.{key}": value for key, value in spec.selectors.items()}
            fixed |= {f"config.{key}": value for key, value in spec.config.items()}
        self._fixed = fixed

    def value(self, name: str) -> Any:
        """What ``${name}`` stands for.

        Raises:
            UnknownVariableError: nothing defines it.
        """
        if name in self._fixed:
            return self._fixed[name]
        group, _, rest = name.partition(".")
        if rest and (group in {"node", "name"} or (group == "class" and self._profile is None)):
            return (
                f"{rest}-{self._unique}.{SYNTHETIC_DOMAIN}"
                if group == "class"
                else (f"dra-{rest}-{self._unique}")
            )
        raise UnknownVariableError(name, [*sorted(self._fixed), "node.NAME", "name.NAME"])

    def canonical(self, text: str) -> str:
        """``text`` without what differs from run to run."""
        return text.replace(self._unique, "*")


def substitute(value: Any, lookup: Callable[[str], Any]) -> Any:
    """A scalar with every ``${name}`` replaced by ``lookup(name)``; no text is searched twice."""
    if not isinstance(value, str) or "${" not in value:
        return value
    whole = VARIABLE.fullmatch(value)
    if whole:
        return lookup(whole[1])
    return VARIABLE.sub(lambda match: str(lookup(match[1])), value)
