"""Feature gates with which a component of another Kubernetes minor would not start.

They are where people write them: configurations of components (kubelet, kind, kubeadm), flags of
the components' containers, and ConfigMaps that hold such configurations as text. Programs that
have gates of their own, as Kueue has, are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from conformance.scenario.upgrades.problem import UpgradeProblem
from kube.values import Obj
from reference_allocator.gates import check_gates, gates_for_version

_FIELDS: Final = ("featureGates", "feature-gates")
_FLAG: Final = re.compile(r"""--feature-gates[= ]["']?([^\s"']+)""")
_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
"""What Go's strconv.ParseBool reads."""
_COMPONENT: Final = re.compile(r"kube-?(apiserver|controller-?manager|scheduler|let|-proxy)\b")
_OWN_GROUPS: Final = re.compile(r"(kind|.*cluster)\.x-k8s\.io/|(?!.*\.x-k8s\.io/)")
"""API versions of configurations whose gates are Kubernetes'; ``x-k8s.io`` has others' as well."""
_CONFIGURATION_MAX: Final = 1 << 20


def find_gates(item: Obj, before: str, after: str) -> Iterator[UpgradeProblem]:
    """Yield the gates of a component's configuration or flags with which it would not start.

    Where it does not start in the minor ``before`` either, that is no news.
    """
    for path, gates in _list_gates(item, "$"):
        whole = _explain(after, gates)
        if not whole:
            continue
        started = not _explain(before, gates)
        problems = [
            problem
            for gate, on in gates.items()
            if (problem := _explain(after, {gate: on}))
            and (started or not _explain(before, {gate: on}))
        ]
        for problem in problems or ([whole] if started else []):
            yield UpgradeProblem("gate-cannot-be-set", item, path, problem)


def _explain(version: str, gates: Mapping[str, bool]) -> str:
    """Return why no component of a version starts with gates; those not of DRA are left out."""
    known = gates_for_version(version)
    try:
        check_gates(version, {gate: on for gate, on in gates.items() if gate in known})
    except ValueError as error:
        return str(error)
    return ""


def _list_gates(
    value: Any, path: str, *, named: bool = False
) -> Iterator[tuple[str, dict[str, bool]]]:
    """Yield where gates are chosen, and which; ``named``: in an object named as a component is."""
    if isinstance(value, dict):
        meta = value.get("metadata")
        named = named or (isinstance(meta, dict) and _is_component(meta.get("name")))
        if not _OWN_GROUPS.match(str(value.get("apiVersion") or "")):
            return
        if value.get("kind") == "ConfigMap":
            yield from _list_embedded_gates(value, path)
            return
        if value.get("name") in _FIELDS and isinstance(value.get("value"), str):
            yield f"{path}.value", _read_gates(value["value"])  # extraArgs of kubeadm's v1beta4
        for key, child in value.items():
            inner = f"{path}.{key}"
            if key in _FIELDS:
                yield inner, _read_gates(child)
            elif key in ("containers", "initContainers") and isinstance(child, list):
                for index, container in enumerate(child):
                    if named or _runs_component(container):
                        yield from _list_gates(container, f"{inner}[{index}]")
            else:
                yield from _list_gates(child, inner, named=named)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            previous = value[index - 1] if index else None
            if previous == "--feature-gates" and isinstance(child, str):
                yield f"{path}[{index}]", _read_gates(child)
            yield from _list_gates(child, f"{path}[{index}]", named=named)
    elif isinstance(value, str) and "--feature-gates" in value:
        for flag in _FLAG.findall(value):
            yield path, _read_gates(flag)


def _runs_component(container: Any) -> bool:
    """Return whether a container says that it runs a component of Kubernetes."""
    if not isinstance(container, dict):
        return False
    words = [container.get("name"), container.get("image"), *_as_list(container.get("command"))]
    return any(map(_is_component, (*words, *_as_list(container.get("args")))))


def _is_component(word: Any) -> bool:
    return bool(_COMPONENT.search(str(word)))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _list_embedded_gates(item: Obj, path: str) -> Iterator[tuple[str, dict[str, bool]]]:
    """Yield the gates of configurations that a ConfigMap holds as YAML, as kubeadm's does."""
    data = item.get("data")
    for key, text in (data if isinstance(data, dict) else {}).items():
        has_gates = isinstance(text, str) and any(field in text for field in _FIELDS)
        if not has_gates or len(text) > _CONFIGURATION_MAX:
            continue
        try:
            embedded = list(yaml.safe_load_all(text))
        except (yaml.YAMLError, ValueError, RecursionError):
            continue
        for document in embedded:
            for _, gates in _list_gates(document, ""):
                yield f"{path}.data.{key}", gates


def _read_gates(value: Any) -> dict[str, bool]:
    """Return the gates of a mapping, or of a flag's text; what is neither has none."""
    if isinstance(value, dict):
        return {str(name): on for name, on in value.items() if isinstance(on, bool)}
    settings = (setting.partition("=") for setting in str(value).strip("\"'").split(","))
    return {name.strip(): _BOOLEANS[on] for name, _, on in settings if on in _BOOLEANS}
