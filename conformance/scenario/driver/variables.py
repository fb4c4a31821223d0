"""Replace ``${...}`` in a scenario by what the driver profile, or this run, calls things.

This is not a template language: a name stands for a value, and nothing can be computed. A text
that is nothing but one ``${...}`` becomes the value with its type (a list, a mapping).

``${captured.NAME.path}`` is a value of an object that an earlier step captured. It is known only
while the scenario runs, so it is put in when its step begins.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from conformance.errors import UsageError
from conformance.probe import Probe
from conformance.scenario.base import Obj
from conformance.scenario.documents.validate import nearest
from conformance.scenario.driver import devicefiles
from conformance.scenario.driver.profile import DriverProfile, ProfileSpec

VARIABLE = re.compile(r"\$\{([^}]*)\}")
UNCLOSED = re.compile(r"\$\{[^}]*\Z")
FIXED_NAMES = ("driver", "image", "namespace", "probe.exit", "probe.hold", "probe.open")
"""The variables that every scenario has, whatever the driver profile."""

DEVICE_NAMES = ("tolerations", "worker.device", "worker.majority", "worker.name", "worker.selector")
"""The variables beside them where there are devices of a driver: not in the allocation tier."""

OTHER = "other"  # ``${other.driver}`` and ``${other.class.NAME}`` are of another driver's profile.

CAPTURED = "captured"  # ``${captured.NAME.path}`` is known once a step has captured NAME.

MOST_DEVICES = 32  # That one claim may have (``AllocationResultsMaxSize`` of the API).

SYNTHETIC_DOMAIN = "dra-conformance.dev"


def profile_variables(spec: ProfileSpec) -> dict[str, dict[str, Any]]:
    """The variables that a profile defines: group -> name -> value."""
    return {
        "attribute": {**spec.attributes},
        "capacity": {**spec.capacity},
        "class": {key: value.name for key, value in spec.classes.items()},
        "config": {**spec.config},
        "selector": {**spec.selectors},
    }


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
        devices_on: node -> how many devices of the driver are free there.
        different_on: node -> how many different devices these are, where claims may share some.
        one_device_on: node -> name of a device, and CEL that no other device of the driver fits.
        other: profile of another driver that the scenario needs.
        hardware: containers also show what the profile's commands say of the hardware.
    """

    def __init__(
        self,
        profile: DriverProfile | None,
        unique: str,
        image: str,
        devices_on: Mapping[str, int] | None = None,
        one_device_on: Mapping[str, Sequence[Any]] | None = None,
        *,
        different_on: Mapping[str, int] | None = None,
        other: DriverProfile | None = None,
        hardware: bool = False,
    ) -> None:
        self._unique = unique
        self._profile = profile
        commands: dict[str, str] = {}
        for one in filter(None, (profile, other)):
            commands |= one.spec.probe.scripts(one.driver)
        if profile is not None and hardware:
            commands |= {name: one.run for name, one in profile.spec.probe.hardware.items()}
        opening = {devicefiles.NAME: devicefiles.SCRIPT}
        fixed: dict[str, Any] = {
            "image": image,
            "namespace": namespace(unique),
            "probe.hold": list(Probe(holds=True, commands=commands).words),
            "probe.exit": list(Probe(holds=False, commands=commands).words),
            "probe.open": list(Probe(holds=True, commands=commands | opening).words),
        }
        if profile is None:
            fixed["driver"] = f"d-{unique}.{SYNTHETIC_DOMAIN}"
        else:
            tolerations = list(profile.spec.tolerations)
            fixed |= {"driver": profile.driver, "tolerations": tolerations}
            worker = worker_of(devices_on or {})
            if devices_on and worker is not None:
                different = (different_on or {}).get(worker, devices_on[worker])
                majority = min(different // 2 + 1, MOST_DEVICES)
                fixed |= {"worker.name": worker, "worker.majority": majority}
                name, selector = (one_device_on or {}).get(worker, ("", ""))[:2]
                fixed |= {"worker.device": name, "worker.selector": selector}
            for group, defined in profile_variables(profile.spec).items():
                fixed |= {f"{group}.{name}": value for name, value in defined.items()}
            if other is not None:
                fixed |= _of_other(other)
                more = (item for item in other.spec.tolerations if item not in tolerations)
                fixed["tolerations"] = [*tolerations, *more]
        self._fixed = fixed

    def value(self, name: str) -> Any:
        """What ``${name}`` stands for. Raises UsageError: nothing defines it."""
        if name in self._fixed:
            return self._fixed[name]
        group, _, rest = name.partition(".")
        if group == CAPTURED:
            return f"${{{name}}}"
        if rest and (group in {"node", "name"} or (group == "class" and self._profile is None)):
            own = f"{rest}-{self._unique}"
            return f"{own}.{SYNTHETIC_DOMAIN}" if group == "class" else f"dra-{own}"
        known = [*sorted(self._fixed), "node.NAME", "name.NAME"]
        near = nearest(name, known)
        meant = f" (did you mean ${{{near}}}?)" if near else ""
        raise UsageError(f"unknown variable ${{{name}}}{meant}; known are {', '.join(known)}")

    def make_canonical(self, text: str) -> str:
        """``text`` without what differs from run to run, or from cluster to cluster."""
        text = text.replace(self._unique, "*")
        worker = self._fixed.get("worker.name")
        if worker is None:
            return text
        return re.sub(rf"(?<![\w.-]){re.escape(worker)}(?![\w.-])", "${worker.name}", text)


def _of_other(profile: DriverProfile) -> dict[str, Any]:
    classes = profile_variables(profile.spec)["class"]
    return {f"{OTHER}.driver": profile.driver} | {
        f"{OTHER}.class.{name}": value for name, value in classes.items()
    }


def worker_of(devices_on: Mapping[str, int]) -> str | None:
    """The node that ``${worker.name}`` stands for, by free devices; None where no node has any."""
    return max(devices_on, key=lambda node: _suits(devices_on[node]), default=None)


def _suits(devices: int) -> tuple[bool, int]:
    """Prefers nodes where one claim can have the majority of the devices, of these the largest."""
    return devices // 2 + 1 <= MOST_DEVICES, devices


def substitute(value: Any, lookup: Callable[[str], Any]) -> Any:
    """A scalar with every ``${name}`` replaced by ``lookup(name)``; no text is searched twice."""
    if not isinstance(value, str) or "${" not in value:
        return value
    whole = VARIABLE.fullmatch(value)
    if whole:
        return lookup(whole[1])
    return VARIABLE.sub(lambda match: str(lookup(match[1])), value)


M = TypeVar("M", bound=BaseModel)

PART: Final = re.compile(r"\.(?P<field>\w+)|\[(?P<index>\d+)\]|\[['\"](?P<key>.*?)['\"]\]")
"""A step from a value to one in it: ``.field``, ``[0]`` or ``['key']``."""


def filled(step: M, captured: Mapping[str, Obj]) -> tuple[M, dict[str, str]]:
    """A step with what it has of captured objects; and text -> variable, of each that it is.

    Raises LookupError: an object has no such value; its text says which.
    """
    found: dict[str, str] = {}

    def value(name: str) -> Any:
        given = f"${{{name}}}"
        if not name.startswith(f"{CAPTURED}."):
            return given
        item = looked_up(name, captured)
        if isinstance(item, str):
            found[item] = given
        return item

    return _replaced(step, value), found


def looked_up(name: str, captured: Mapping[str, Obj]) -> Any:
    """What ``captured.NAME.path`` stands for. Raises LookupError: it is not there."""
    _, owner, path = split(name)
    obj = captured[owner]
    try:
        return value_at(obj, path)
    except LookupError as error:
        what = f"the captured {owner} has no {path[1:]}: {error.args[0]} is not there"
        raise LookupError(what) from None


def value_at(value: Any, path: str) -> Any:
    """What is at a path like ``.items[0]['key']`` in a value. Raises LookupError: what is not."""
    for part in PART.finditer(path):
        key: Any = int(part["index"]) if part["index"] is not None else part["field"] or part["key"]
        in_list = isinstance(value, list) and isinstance(key, int) and key < len(value)
        if not in_list and not (isinstance(value, dict) and key in value):
            raise LookupError(part[0])
        value = value[key]
    return value


def split(name: str) -> tuple[str, str, str]:
    """``captured``, the name, and the path as it would follow a variable of CEL."""
    group, _, rest = name.partition(".")
    owner = re.match(r"\w*", rest)
    return group, owner[0] if owner else "", rest[owner.end() if owner else 0 :]


def _replaced(value: Any, lookup: Callable[[str], Any]) -> Any:
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in value.model_fields_set}
        changed = {
            name: new for name, old in fields.items() if (new := _replaced(old, lookup)) is not old
        }
        return value.model_copy(update=changed) if changed else value
    if isinstance(value, dict):
        new = {substitute(key, lookup): _replaced(item, lookup) for key, item in value.items()}
        same = all(new.get(key) is item for key, item in value.items())
        return value if same else new
    if isinstance(value, list | tuple):
        items = [_replaced(item, lookup) for item in value]
        same = all(one is other for one, other in zip(items, value, strict=True))
        return value if same else type(value)(items)
    return substitute(value, lookup)
