"""What stored objects and manifests lose or get with another Kubernetes minor, before it is there.

For ``audit --upgrade-to`` and ``lint --kubernetes``. Objects are looked at as they are: no defaults
are filled in, and what is no object of DRA or a component's configuration is passed over. Each
problem names a row of `conformance.scenario.minor_changes`, which has the advice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from conformance.scenario.minor_changes import load_changes
from kube.base.errors import UsageError
from kube.base.text import counted
from kube.slices import results_of
from kube.values import Obj
from kubesim.resources import find_removal
from kubesim.validation import since_1_38
from kubesim.validation.constraints import list_device_requests
from kubesim.validation.device import is_semver
from reference_allocator.api.quantity import parse_quantity
from reference_allocator.gates import MINORS, check_gates, minor_of

_GROUP: Final = "resource.k8s.io/"
_FLAT: Final = "resource.k8s.io/v1beta1"
"""The version whose fields lie elsewhere than those of v1: only its name is looked at."""
_FLAG: Final = re.compile(r"--feature-gates[= ](\S+)")
_MAX_EVALUATIONS: Final = 20_000
_UINT64_MAX: Final = 2**64 - 1

_PARTS_OF_SNAPSHOT: Final = {
    "slices": "ResourceSlice",
    "deviceClasses": "DeviceClass",
    "claims": "ResourceClaim",
    "allocated": "ResourceClaim",
}
NOT_IN_A_SNAPSHOT: Final = (
    "a snapshot has no ResourceClaimTemplates and DeviceTaintRules, no flags and configurations of "
    "components, and no API versions that clients use: `lint --kubernetes` looks at those in files"
)


@dataclass(frozen=True, slots=True)
class UpgradeProblem:
    """Something that another minor treats otherwise.

    Attributes:
        change: the row of `conformance.scenario.minor_changes`.
        item: the object that it is about, one of those that were given.
        path: where in it, as the API server writes field paths.
        text: what is otherwise for it.
    """

    change: str
    item: Obj
    path: str
    text: str

    @property
    def object(self) -> str:
        """Return kind and name of the object."""
        meta = self.item.get("metadata") or {}
        name = "/".join(str(part) for part in (meta.get("namespace"), meta.get("name")) if part)
        return f"{self.item.get('kind') or 'document'} {name}".strip()

    @property
    def advice(self) -> str:
        """Return what to do."""
        return load_changes()[self.change].advice


def check_upgrade(current: str, target: str) -> tuple[str, str]:
    """Return the minors of the cluster as it is, and of the one that it is to become.

    Raises UsageError: a minor is not known, or the target is not newer.
    """
    if not current:
        raise UsageError(
            "--upgrade-to: the snapshot does not say which Kubernetes it is of; take one with "
            "`capture`"
        )
    try:
        before, after = minor_of(current), minor_of(target)
    except ValueError as error:
        raise UsageError(f"--upgrade-to: {error}") from None
    if MINORS.index(after) <= MINORS.index(before):
        raise UsageError(
            f"--upgrade-to {target}: the cluster is of Kubernetes {before} already; name a later "
            "minor"
        )
    return before, after


def list_objects(snapshot: Mapping[str, Any]) -> list[Obj]:
    """Return the objects of a snapshot with ``apiVersion`` and ``kind``."""
    return [
        {"apiVersion": f"{_GROUP}v1", "kind": kind, **item}
        for part, kind in _PARTS_OF_SNAPSHOT.items()
        for item in snapshot.get(part) or []
    ]


def find_problems(objects: Iterable[Obj], before: str, after: str) -> list[UpgradeProblem]:
    """Return what the minor ``after`` treats otherwise than the minor ``before``, object by object.

    Args:
        objects: API objects and configurations of components.
        before: one of `MINORS`.
        after: a later one.
    """
    everything = [item for item in objects if isinstance(item, dict)]
    current = [item for item in everything if item.get("apiVersion") != _FLAT]
    problems: list[UpgradeProblem] = []
    for item in everything:
        problems += _find_gates(item, before, after)
        problems += _find_removed_version(item, before, after)
    problems += _find_selectors(current, before, after)
    if MINORS.index(before) < MINORS.index("1.38") <= MINORS.index(after):
        problems += _find_since_1_38(current)
    return problems


def _find_since_1_38(objects: Sequence[Obj]) -> Iterator[UpgradeProblem]:
    attributes = _Attributes.of_slices(objects)
    for item in objects:
        if not _is_of_dra(item):
            continue
        kind = str(item.get("kind"))
        for error in since_1_38.check_added(kind, item, None, status=False):
            yield UpgradeProblem("refused-when-written", item, error.path, f"{error.body}")
        if kind == "DeviceTaintRule" and (item.get("spec") or {}).get("deviceSelector") == {}:
            text = "an empty selector matches every device from every driver in the cluster"
            yield UpgradeProblem("empty-selector-warned", item, "spec.deviceSelector", text)
        if kind == "ResourceSlice":
            yield from _find_unreadable(item)
        if kind == "ResourceClaim":
            yield from _find_negative_shares(item)
        for path, devices in _list_claim_devices(item):
            yield from _find_in_claim(item, devices, path, attributes)


@dataclass(frozen=True, slots=True)
class _Attributes:
    """The attributes and capacities of all slices that changes of minors are about.

    Attributes:
        builds: complete attribute name -> versions with build metadata that are one without it.
        capacities: complete capacity name -> how drivers spell it.
    """

    builds: Mapping[str, set[str]]
    capacities: Mapping[str, set[str]]

    @classmethod
    def of_slices(cls, objects: Iterable[Obj]) -> _Attributes:
        versions: dict[str, dict[str, set[str]]] = {}
        capacities: dict[str, set[str]] = {}
        for driver, device in _list_devices(objects):
            for name, attribute in (device.get("attributes") or {}).items():
                texts = [attribute.get("version"), *(attribute.get("versions") or [])]
                for text in (text for text in texts if text):
                    bare = str(text).partition("+")[0]
                    versions.setdefault(_complete(name, driver), {}).setdefault(bare, set()).add(
                        text
                    )
            for name in device.get("capacity") or {}:
                capacities.setdefault(_complete(name, driver), set()).add(name)
        builds = {
            name: {text for texts in by_bare.values() if len(texts) > 1 for text in texts}
            for name, by_bare in versions.items()
        }
        return cls({name: texts for name, texts in builds.items() if texts}, capacities)


def _find_negative_shares(claim: Obj) -> Iterator[UpgradeProblem]:
    for index, result in enumerate(results_of(claim)):
        for name, amount in (result.get("consumedCapacity") or {}).items():
            try:
                is_negative = parse_quantity(str(amount)).sign() < 0
            except ValueError:
                continue  # No API server has stored that.
            if is_negative:
                path = f"status.allocation.devices.results[{index}].consumedCapacity[{name}]"
                text = f"it is {amount}, and no pod with a claim that waits is scheduled"
                yield UpgradeProblem("negative-shares", claim, path, text)


def _find_in_claim(
    item: Obj, devices: Obj, path: str, attributes: _Attributes
) -> Iterator[UpgradeProblem]:
    for index, constraint in enumerate(devices.get("constraints") or []):
        for field in ("matchAttribute", "distinctAttribute"):
            texts = attributes.builds.get(constraint.get(field) or "")
            if texts:
                inner = f"{path}.constraints[{index}].{field}"
                listed = ", ".join(sorted(texts)[:4])
                text = f"devices have versions that differ in build metadata alone: {listed}"
                yield UpgradeProblem("build-metadata-ignored", item, inner, text)
    for _, body, inner in list_device_requests(devices, path):
        requested = ((body.get("capacity") or {}).get("requests")) or {}
        for capacity in requested:
            for complete, spellings in attributes.capacities.items():
                bare = complete.partition("/")[2]
                if capacity in (complete, bare) and capacity not in spellings:
                    where = f"{inner}.capacity.requests[{capacity}]"
                    published = ", ".join(sorted(spellings))
                    text = f"devices publish it as {published}, and fit from 1.38 on"
                    yield UpgradeProblem("capacity-by-either-name", item, where, text)
        tolerations = body.get("tolerations") or []
        for index, toleration in enumerate(tolerations):
            if toleration.get("effect") or any(_keeps(other, toleration) for other in tolerations):
                continue
            where = f"{inner}.tolerations[{index}]"
            text = "it names no effect, and keeps its pods on devices with a NoExecute taint"
            if toleration.get("key"):
                text += f" {toleration['key']}"
            yield UpgradeProblem("empty-effect-tolerates", item, where, text)


def _keeps(toleration: Obj, other: Obj) -> bool:
    """Return whether a toleration keeps pods for good, today, wherever the other one will."""
    if toleration.get("effect") != "NoExecute" or toleration.get("tolerationSeconds") is not None:
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", other.get("key"))
    return (
        all((toleration.get(field) or "") == (other.get(field) or "") for field in ("key", "value"))
        and other.get("operator") != "Exists"
    )


def _find_unreadable(item: Obj) -> Iterator[UpgradeProblem]:
    for index, device in enumerate((item.get("spec") or {}).get("devices") or []):
        for attribute, value in (device.get("attributes") or {}).items():
            texts = [value.get("version"), *(value.get("versions") or [])]
            numbers = [int(n) for text in texts if text for n in re.findall(r"\d+", str(text))]
            if any(text and not is_semver(str(text)) for text in texts) or any(
                number > _UINT64_MAX for number in numbers
            ):
                where = f"spec.devices[{index}].attributes[{attribute}]"
                text = (
                    "the scheduler cannot read it: constraints on it fail, other selectors do not"
                )
                yield UpgradeProblem("unreadable-value", item, where, text)


def _find_removed_version(item: Obj, before: str, after: str) -> Iterator[UpgradeProblem]:
    version, kind = str(item.get("apiVersion")), str(item.get("kind"))
    if not version.startswith(_GROUP):
        return
    removed = find_removal(version.removeprefix(_GROUP), kind)
    if _number(before) < removed <= _number(after):
        text = f"{version} {kind} is not served from Kubernetes 1.{removed} on"
        yield UpgradeProblem("api-version-not-served", item, "apiVersion", text)


def _number(minor: str) -> int:
    return int(minor.partition(".")[2])


def _find_gates(item: Obj, before: str, after: str) -> Iterator[UpgradeProblem]:
    """Yield the gates of a component's configuration or flags with which it would not start."""
    for path, gates in _list_gates(item, "$"):
        for gate, on in gates.items():
            problem = _explain_gate(after, gate, on)
            if problem and not _explain_gate(before, gate, on):
                yield UpgradeProblem("gate-cannot-be-set", item, path, problem)


def _explain_gate(version: str, gate: str, on: bool) -> str:
    try:
        check_gates(version, {gate: on})
    except ValueError as error:
        return str(error)
    return ""


def _list_gates(value: Any, path: str) -> Iterator[tuple[str, dict[str, bool]]]:
    if isinstance(value, dict):
        for key, child in value.items():
            inner = f"{path}.{key}"
            if key in ("featureGates", "feature-gates"):
                yield inner, _read_gates(child)
            else:
                yield from _list_gates(child, inner)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _list_gates(child, f"{path}[{index}]")
    elif isinstance(value, str) and "--feature-gates" in value:
        for flag in _FLAG.findall(value):
            yield path, _read_gates(flag)


def _read_gates(value: Any) -> dict[str, bool]:
    """Return the gates of a mapping, or of a flag's text; what is neither has none."""
    if isinstance(value, dict):
        return {str(name): on for name, on in value.items() if isinstance(on, bool)}
    settings = (setting.partition("=") for setting in str(value).split(","))
    return {name: on == "true" for name, _, on in settings if on in ("true", "false")}


def _find_selectors(objects: Sequence[Obj], before: str, after: str) -> Iterator[UpgradeProblem]:
    """Yield the selectors that the two minors compile or answer otherwise."""
    from reference_allocator.cel import CelFeatures, validate_new_expression
    from reference_allocator.environment import convert_device

    devices = list(_list_devices(objects))
    environments = [CelFeatures(kubernetes=minor) for minor in (before, after)]
    converted: dict[int, list[Any]] = {}
    evaluations = 0
    for item in filter(_is_of_dra, objects):
        for path, expression in _list_expressions(item):
            old, new = (validate_new_expression(expression, env) for env in environments)
            if bool(old) != bool(new):
                text = f"{after} refuses it: {new[0].message}" if new else f"{after} accepts it"
                yield UpgradeProblem("selector-answers-otherwise", item, path, text)
            evaluations += len(devices)
            if old or new or evaluations > _MAX_EVALUATIONS:
                continue
            changed = []
            for number, (driver, device) in enumerate(devices):
                if number not in converted:
                    converted[number] = [
                        _try(convert_device, env, driver, device) for env in environments
                    ]
                answers = [
                    _answer(expression, env, subject)
                    for env, subject in zip(environments, converted[number], strict=True)
                ]
                if answers[0] != answers[1]:
                    changed.append((str(device.get("name")), *answers))
            if changed:
                name, was, becomes = changed[0]
                text = f"{counted(len(changed), 'device')}, such as {name}: {was}, then {becomes}"
                yield UpgradeProblem("selector-answers-otherwise", item, path, text)


def _try(action: Any, *arguments: Any) -> Any:
    from reference_allocator.cel import CelRuntimeError

    try:
        return action(*arguments)
    except CelRuntimeError as error:
        return f"error ({error})"


def _answer(expression: str, environment: Any, subject: Any) -> str:
    """Return in words what a selector says of a converted device."""
    from reference_allocator.cel import compile_selector
    from reference_allocator.cel.errors import CelUnsupportedError

    if isinstance(subject, str):
        return subject
    try:
        answer = _try(compile_selector(expression, environment).matches, subject)
    except CelUnsupportedError:
        return "not evaluated"
    return answer if isinstance(answer, str) else ("selected" if answer else "not selected")


def _list_devices(objects: Iterable[Obj]) -> Iterator[tuple[str, Obj]]:
    for item in objects:
        if item.get("kind") == "ResourceSlice" and _is_of_dra(item):
            spec = item.get("spec") or {}
            for device in spec.get("devices") or []:
                yield str(spec.get("driver") or ""), device


def _is_of_dra(item: Obj) -> bool:
    return str(item.get("apiVersion", "")).startswith(_GROUP)


def _list_claim_devices(item: Obj) -> Iterator[tuple[str, Obj]]:
    """Yield the path and content of ``spec.devices`` of a claim or template."""
    spec = item.get("spec") or {}
    if item.get("kind") == "ResourceClaim":
        yield "spec.devices", spec.get("devices") or {}
    elif item.get("kind") == "ResourceClaimTemplate":
        yield "spec.spec.devices", (spec.get("spec") or {}).get("devices") or {}


def _list_expressions(item: Obj) -> Iterator[tuple[str, str]]:
    holders = [("spec", item.get("spec") or {})] if item.get("kind") == "DeviceClass" else []
    for path, devices in _list_claim_devices(item):
        holders += [(inner, body) for _, body, inner in list_device_requests(devices, path)]
    for path, holder in holders:
        for index, selector in enumerate(holder.get("selectors") or []):
            expression = (selector.get("cel") or {}).get("expression")
            if expression:
                yield f"{path}.selectors[{index}].cel.expression", str(expression)


def _complete(name: str, driver: str) -> str:
    return name if "/" in name else f"{driver}/{name}"
