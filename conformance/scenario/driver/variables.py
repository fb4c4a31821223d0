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

from conformance.probe import Probe
from conformance.scenario.documents.validate import find_nearest
from conformance.scenario.driver import devicefiles
from conformance.scenario.driver.profile import DriverProfile, ProfileSpec
from kube.base.errors import UsageError
from kube.values import Obj

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
    """Return the variables that a profile defines: group -> name -> value."""
    return {
        "attribute": {**spec.attributes},
        "capacity": {**spec.capacity},
        "class": {key: value.name for key, value in spec.classes.items()},
        "config": {**spec.config},
        "selector": {**spec.selectors},
    }


def make_suffix(run: str, scenario_id: str) -> str:
    """Return eight hex digits that tell this scenario in this run from any other."""
    return hashlib.sha256(f"{run}/{scenario_id}".encode()).hexdigest()[:8]


def name_namespace(unique: str) -> str:
    """Return the namespace of the scenario that has this suffix."""
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
        for driver_profile in filter(None, (profile, other)):
            commands |= driver_profile.spec.probe.list_scripts(driver_profile.driver)
        if profile is not None and hardware:
            commands |= {name: command.run for name, command in profile.spec.probe.hardware.items()}
        opening = {devicefiles.NAME: devicefiles.SCRIPT}
        fixed: dict[str, Any] = {
            "image": image,
            "namespace": name_namespace(unique),
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
                fixed |= _variables_of_other(other)
                other_tolerations = (
                    item for item in other.spec.tolerations if item not in tolerations
                )
                fixed["tolerations"] = [*tolerations, *other_tolerations]
        self._fixed = fixed

    def look_up(self, name: str) -> Any:
        """Return what ``${name}`` stands for. Raises UsageError if nothing defines it."""
        if name in self._fixed:
            return self._fixed[name]
        group, _, local_name = name.partition(".")
        if group == CAPTURED:
            return f"${{{name}}}"
        if local_name and (
            group in {"node", "name"} or (group == "class" and self._profile is None)
        ):
            own_name = f"{local_name}-{self._unique}"
            return f"{own_name}.{SYNTHETIC_DOMAIN}" if group == "class" else f"dra-{own_name}"
        known_names = [*sorted(self._fixed), "node.NAME", "name.NAME"]
        near = find_nearest(name, known_names)
        meant = f" (did you mean ${{{near}}}?)" if near else ""
        raise UsageError(f"unknown variable ${{{name}}}{meant}; known are {', '.join(known_names)}")

    def make_canonical(self, text: str) -> str:
        """Return ``text`` without what differs from run to run, or from cluster to cluster."""
        text = text.replace(self._unique, "*")
        worker = self._fixed.get("worker.name")
        if worker is None:
            return text
        return re.sub(rf"(?<![\w.-]){re.escape(worker)}(?![\w.-])", "${worker.name}", text)


def _variables_of_other(profile: DriverProfile) -> dict[str, Any]:
    classes = profile_variables(profile.spec)["class"]
    return {f"{OTHER}.driver": profile.driver} | {
        f"{OTHER}.class.{name}": value for name, value in classes.items()
    }


def worker_of(devices_on: Mapping[str, int]) -> str | None:
    """Return the node that ``${worker.name}`` stands for, by free devices; None if none has any."""
    return max(devices_on, key=lambda node: _rank_node(devices_on[node]), default=None)


def _rank_node(devices: int) -> tuple[bool, int]:
    """Prefer nodes where one claim can have the majority of the devices, of these the largest."""
    return devices // 2 + 1 <= MOST_DEVICES, devices


def substitute(value: Any, lookup: Callable[[str], Any]) -> Any:
    """Replace every ``${name}`` in a scalar by ``lookup(name)``; no text is searched twice."""
    if not isinstance(value, str) or "${" not in value:
        return value
    whole = VARIABLE.fullmatch(value)
    if whole:
        return lookup(whole[1])
    return VARIABLE.sub(lambda match: str(lookup(match[1])), value)


M = TypeVar("M", bound=BaseModel)

PATH_STEP: Final = re.compile(r"\.(?P<field>\w+)|\[(?P<index>\d+)\]|\[['\"](?P<key>.*?)['\"]\]")
"""A step from a value to one in it: ``.field``, ``[0]`` or ``['key']``."""


def fill_captured(step: M, captured: Mapping[str, Obj]) -> tuple[M, dict[str, str]]:
    """Fill a step with values of captured objects; return it, and text -> variable of each.

    Raises LookupError: an object has no such value; its text says which.
    """
    variable_by_text: dict[str, str] = {}

    def value(name: str) -> Any:
        variable = f"${{{name}}}"
        if not name.startswith(f"{CAPTURED}."):
            return variable
        item = look_up_captured(name, captured)
        if isinstance(item, str):
            variable_by_text[item] = variable
        return item

    return _replace_in(step, value), variable_by_text


def look_up_captured(name: str, captured: Mapping[str, Obj]) -> Any:
    """Return what ``captured.NAME.path`` stands for. Raises LookupError if it is not there."""
    _, owner, path = split_captured(name)
    obj = captured[owner]
    try:
        return value_at(obj, path)
    except LookupError as error:
        message = f"the captured {owner} has no {path[1:]}: {error.args[0]} is not there"
        raise LookupError(message) from None


def value_at(value: Any, path: str) -> Any:
    """Return what is at a path like ``.items[0]['key']``. Raises LookupError for a missing step."""
    for step in PATH_STEP.finditer(path):
        key: Any = int(step["index"]) if step["index"] is not None else step["field"] or step["key"]
        in_list = isinstance(value, list) and isinstance(key, int) and key < len(value)
        if not in_list and not (isinstance(value, dict) and key in value):
            raise LookupError(step[0])
        value = value[key]
    return value


def split_captured(name: str) -> tuple[str, str, str]:
    """Split a variable: ``captured``, the name, and the path as it follows a variable of CEL."""
    group, _, remainder = name.partition(".")
    owner = re.match(r"\w*", remainder)
    return group, owner[0] if owner else "", remainder[owner.end() if owner else 0 :]


def _replace_in(value: Any, lookup: Callable[[str], Any]) -> Any:
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in value.model_fields_set}
        changed = {
            name: new
            for name, old in fields.items()
            if (new := _replace_in(old, lookup)) is not old
        }
        return value.model_copy(update=changed) if changed else value
    if isinstance(value, dict):
        new = {substitute(key, lookup): _replace_in(item, lookup) for key, item in value.items()}
        same = all(new.get(key) is item for key, item in value.items())
        return value if same else new
    if isinstance(value, list | tuple):
        items = [_replace_in(item, lookup) for item in value]
        same = all(new_item is old_item for new_item, old_item in zip(items, value, strict=True))
        return value if same else type(value)(items)
    return substitute(value, lookup)
