"""Selectors that another Kubernetes minor refuses, accepts or answers otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from conformance.scenario.upgrades.devices import PublishedDevice, list_devices
from conformance.scenario.upgrades.problem import (
    UpgradeProblem,
    is_of_dra,
    list_claim_devices,
    list_expressions,
)
from kube.base.text import counted
from kube.values import Obj
from kubesim.validation.constraints import list_device_requests
from reference_allocator.cel import (
    CelFeatures,
    CelRuntimeError,
    compile_selector,
    validate_new_expression,
)
from reference_allocator.cel.errors import CelUnsupportedError
from reference_allocator.environment import convert_device, selector_environment
from reference_allocator.features import Features

MAX_EVALUATIONS: Final = 400_000
"""How often selectors are asked of devices, in each minor: some ten seconds."""
_LEAST_DEVICES: Final = 100

Side = tuple[str, Features]
"""A minor, and what its scheduler may use."""


def find_selectors(
    objects: Sequence[Obj], before: Side, after: Side, report: Callable[[str], None]
) -> Iterator[UpgradeProblem]:
    """Yield the selectors that the two minors compile or answer otherwise.

    Args:
        objects: of one cluster, or of one repository.
        before: the minor as it is.
        after: the later one.
        report: told in a sentence if there are too many devices to ask each selector of all.
    """
    written = [_written_environment(*side) for side in (before, after)]
    stored = [selector_environment(features, minor) for minor, features in (before, after)]
    places: dict[str, list[tuple[Obj, str]]] = {}
    for item in filter(is_of_dra, objects):
        for path, expression in _list_places(item):
            places.setdefault(expression, []).append((item, path))
    if not places:
        return
    kinds = _list_kinds(objects)
    asked = max(_LEAST_DEVICES, MAX_EVALUATIONS // len(places))
    if len(kinds) > asked:
        report(
            f"selectors were asked of {asked} of {len(kinds)} different devices only: what they "
            "say of the others is not known"
        )
        step = len(kinds) / asked
        kinds = [kinds[int(number * step)] for number in range(asked)]
    converted = [
        [_try(convert_device, env, kind[0].driver, kind[0].content) for env in stored]
        for kind in kinds
    ]
    for expression, used in places.items():
        old, new = (validate_new_expression(expression, env) for env in written)
        texts = []
        if bool(old) != bool(new):
            minor = after[0]
            texts.append(f"{minor} refuses it: {new[0].message}" if new else f"{minor} accepts it")
        if not old and not new:
            texts += _compare_answers(expression, stored, kinds, converted)
        for item, path in used:
            for text in texts:
                yield UpgradeProblem("selector-answers-otherwise", item, path, text)


def _compare_answers(
    expression: str,
    environments: Sequence[CelFeatures],
    kinds: Sequence[Sequence[PublishedDevice]],
    converted: Sequence[Sequence[Any]],
) -> Iterator[str]:
    """Yield how many devices are answered otherwise, with the first of them; nothing if none is."""
    changed, example = 0, ""
    for kind, subjects in zip(kinds, converted, strict=True):
        was, becomes = (
            _answer(expression, env, subject)
            for env, subject in zip(environments, subjects, strict=True)
        )
        if was != becomes:
            changed += len(kind)
            example = example or f"{kind[0].name}: {was}, then {becomes}"
    if changed:
        yield f"{counted(changed, 'device')}, such as {example}"


def _written_environment(minor: str, features: Features) -> CelFeatures:
    """Return the environment in which an API server checks an expression that is written."""
    return CelFeatures(
        consumable_capacity=features.consumable_capacity,
        list_type_attributes=features.list_type_attributes,
        stored=False,
        kubernetes=minor,
    )


def _list_kinds(objects: Sequence[Obj]) -> list[list[PublishedDevice]]:
    """Return the devices, those together of which a selector cannot tell one from another."""
    kinds: dict[str, list[PublishedDevice]] = {}
    for device in list_devices(objects):
        content = {key: value for key, value in device.content.items() if key != "name"}
        key = json.dumps([device.driver, content], sort_keys=True, default=str)
        kinds.setdefault(key, []).append(device)
    return list(kinds.values())


def _list_places(item: Obj) -> Iterator[tuple[str, str]]:
    holders = [("spec", item.get("spec") or {})] if item.get("kind") == "DeviceClass" else []
    for path, devices in list_claim_devices(item):
        holders += [(inner, body) for _, body, inner in list_device_requests(devices, path)]
    for path, holder in holders:
        for index, expression in enumerate(list_expressions(holder)):
            if expression:
                yield f"{path}.selectors[{index}].cel.expression", expression


def _try(action: Any, *arguments: Any) -> Any:
    try:
        return action(*arguments)
    except CelRuntimeError as error:
        return f"error ({error})"


def _answer(expression: str, environment: CelFeatures, subject: Any) -> str:
    """Return in words what a selector says of a converted device."""
    if isinstance(subject, str):
        return subject
    try:
        answer = _try(compile_selector(expression, environment).matches, subject)
    except CelUnsupportedError:
        return "not evaluated"
    return answer if isinstance(answer, str) else ("selected" if answer else "not selected")
