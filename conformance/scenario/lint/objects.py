"""Are the manifests of a scenario such that an API server takes them as they are meant?

Fields are compared with those of the Kubernetes API (`reference_allocator.api.schema`), strictly,
as the suite creates objects. Where a field has few values, a value that is like a known one is a
mistake; a newer API may know more (k8s.io/api core/v1, batch/v1 and resource/v1 of Kubernetes
1.37). What is expected to be ``rejected`` is wrong on purpose, but only in the way that the
expectation says.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from conformance.scenario.documents.validate import find_nearest, hint
from conformance.scenario.documents.yamlfile import (
    PathTuple,
    Problem,
    as_mapping,
    walk,
)
from conformance.scenario.driver.variables import VARIABLE
from conformance.scenario.lint.created_objects import list_applied_objects
from conformance.scenario.lint.refusals import ApiRules, list_pod_refusals, rules_of
from conformance.scenario.lint.retired import GROUP, list_objects, manifest_problems
from conformance.scenario.lint.variables import fill_manifest, selector_problems
from conformance.scenario.model import Requires, Scenario
from reference_allocator.api import schema
from reference_allocator.gates import LATEST

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_UNSTABLE = re.compile(r"v\d+(alpha|beta)\d+")
_WORDS = {
    "bool": "true or false",
    "int32": "a whole number",
    "int64": "a whole number",
    "intorstring": "a whole number or text",
    "quantity": "a quantity like 4 or 16Gi",
    "string": "text",
    "time": "a time as text",
}


def check_manifests(scenario: Scenario) -> Iterator[Problem]:
    for path, manifest in list_applied_objects(scenario):
        yield from _check_manifest(manifest, scenario.spec.requires, path)
        yield from selector_problems(manifest, path)


def _check_manifest(
    manifest: Mapping[str, Any], requires: Requires, path: PathTuple
) -> Iterator[Problem]:
    for field in ("apiVersion", "kind"):
        if not isinstance(manifest.get(field), str) or not manifest[field]:
            yield Problem((*path, field), "is required but missing, or not text")
            return
    name = as_mapping(manifest.get("metadata")).get("name")
    if name is None:
        yield Problem(
            (*path, "metadata", "name"),
            "is required but missing: objects are found, and removed again, by their names",
        )
    elif isinstance(name, str) and not _NAME.fullmatch(VARIABLE.sub("x", name)):
        yield Problem(
            (*path, "metadata", "name"),
            f"{name!r} is not a valid name: use a-z, 0-9, '-' and '.', with a letter or digit"
            " at both ends",
        )
    explained = [
        Problem((*path, *problem.path), problem.message)
        for problem in manifest_problems(manifest)
        if problem.severity == "error"
    ]
    places = {problem.path for problem in explained}
    problems = explained + [
        problem
        for problem in (
            *kind_problems(manifest["kind"], manifest["apiVersion"], requires.apis, path),
            *field_problems(manifest["kind"], manifest["apiVersion"], manifest, path),
        )
        if problem.path not in places
    ]
    rules = rules_of(LATEST, frozenset(requires.feature_gates_off))
    yield from problems or _list_refusals_beside_variables(manifest, rules, path)


def _list_refusals_beside_variables(
    manifest: Mapping[str, Any], rules: ApiRules, path: PathTuple
) -> Iterator[Problem]:
    """Yield what an API server refuses, whatever the variables in a manifest stand for."""
    filled = fill_manifest(manifest)
    for problem in () if filled is None else _list_refusals(filled, rules):
        if problem.severity == "error" and not _has_variable(manifest, problem.path):
            yield Problem((*path, *problem.path), problem.message)


def _has_variable(manifest: Any, path: PathTuple) -> bool:
    """Return whether a value of a manifest, or the name of what holds it, has a variable in it."""
    for key in path:
        if isinstance(manifest, dict) and key not in manifest and any("${" in k for k in manifest):
            return True
        try:
            manifest = manifest[key]
        except (LookupError, TypeError):
            return False
    return "${" in repr(manifest)


def _list_refusals(obj: Mapping[str, Any], rules: ApiRules) -> Iterator[Problem]:
    is_group = (obj.get("apiVersion"), obj.get("kind")) == ("scheduling.k8s.io/v1beta1", "PodGroup")
    if is_group or str(obj.get("apiVersion")).startswith(f"{GROUP}/"):
        yield from rules.list_refusals(obj)
    else:
        yield from list_pod_refusals(obj)


def standalone_problems(data: Any, kubernetes: str = LATEST) -> Iterator[Problem]:
    """Yield the problems of a manifest outside a scenario, or of each object in a List.

    These are what DRA retired, unknown fields, CEL that does not compile, and what else the API
    server of a minor refuses, or drops.
    """
    explained = list(manifest_problems(data))
    yield from explained
    for path, obj in list_objects(as_mapping(data)):
        places = {
            problem.path
            for problem in explained
            if problem.severity == "error" and problem.path[: len(path)] == path
        }
        kind, version = obj.get("kind"), obj.get("apiVersion")
        if not isinstance(kind, str) or not isinstance(version, str):
            continue
        is_dra = version.startswith(f"{GROUP}/")
        decoding = list(field_problems(kind, version, obj, path))
        if decoding and _is_strategic_patch(obj):
            continue
        yield from (problem for problem in decoding if problem.path not in places)
        has_expressions = is_dra and kind != "ResourceSlice"
        root = None if decoding else schema.root_of(kind, version)
        expressions = (
            list(selector_problems(obj, path, root, kubernetes)) if has_expressions else []
        )
        yield from expressions
        if decoding or places:
            continue  # a server looks no further, and what follows from it is no news
        if is_dra and root is None:
            yield from kind_problems(kind, None, (), path)
        places = {problem.path for problem in expressions}
        for problem in (
            *_list_refusals(obj, rules_of(kubernetes)),
            *_warn_of_rule_for_all(obj),
        ):
            if (*path, *problem.path) not in places:
                yield Problem((*path, *problem.path), problem.message, problem.severity)


def _is_strategic_patch(obj: Mapping[str, Any]) -> bool:
    """Return whether an object is a patch of one, as kustomize has them, by its directives.

    Source: k8s.io/apimachinery/pkg/util/strategicpatch/patch.go.
    """
    return any(
        str(key) in ("$patch", "$retainKeys")
        or str(key).startswith(("$setElementOrder/", "$deleteFromPrimitiveList/"))
        for _, value in walk(obj)
        if isinstance(value, dict)
        for key in value
    )


def _warn_of_rule_for_all(obj: Mapping[str, Any]) -> Iterator[Problem]:
    """Warn of a DeviceTaintRule that selects nothing, which is a rule for all (``TaintRule``)."""
    if selects_every_device(obj):
        text = "is empty, so that every device of the cluster is tainted, whoever uses it"
        effect = as_mapping(as_mapping(obj["spec"]).get("taint")).get("effect")
        if effect == "NoExecute":
            text += ": all pods with devices are evicted"
        place = ("spec", "deviceSelector")
        yield Problem(place, f"{text}; name driver, pool or device", "warning")


def list_rules_for_every_device(scenario: Scenario) -> Iterator[PathTuple]:
    """Yield where a scenario makes a DeviceTaintRule that selects every device, or makes it so."""
    for path, obj in list_applied_objects(scenario):
        if selects_every_device(obj):
            yield path
    for index, step in enumerate(scenario.spec.steps):
        path = ("spec", "steps", index)
        if step.update is not None and selects_every_device(step.update.object):
            yield (*path, "update", "object")
        patch = step.patch if step.patch and step.patch.kind == "DeviceTaintRule" else None
        if patch is not None and any(map(_widens_selector, _list_operations(patch.body))):
            yield (*path, "patch")


def _list_operations(body: Any) -> list[Mapping[str, Any]]:
    """Return a patch as operations of a JSON patch."""
    if isinstance(body, list):
        return body
    spec = as_mapping(body.get("spec"))
    selector = spec.get("deviceSelector")
    return [{"path": _SELECTOR, "value": selector}] if isinstance(selector, dict) else []


_SELECTOR: Final = "/spec/deviceSelector"


def _widens_selector(operation: Mapping[str, Any]) -> bool:
    """Return whether an operation may leave a selector without criteria."""
    if operation["path"] == _SELECTOR:
        value = operation.get("value")
        return isinstance(value, dict) and not any(value.values())
    return operation["path"].startswith(f"{_SELECTOR}/") and operation.get("value") is None


def selects_every_device(obj: Mapping[str, Any]) -> bool:
    """Return whether an object is a DeviceTaintRule for all devices of a cluster.

    Source: ``DeviceTaintRuleSpec.DeviceSelector`` of resource.k8s.io/v1: an empty selector matches
    every device, and none matches no device.
    """
    selector = as_mapping(obj.get("spec")).get("deviceSelector")
    is_rule = obj.get("kind") == "DeviceTaintRule"
    return is_rule and isinstance(selector, dict) and not any(selector.values())


def refused_problems(
    obj: Mapping[str, Any], message: str | None, apis: tuple[str, ...], path: PathTuple
) -> Iterator[Problem]:
    """Yield what else is wrong in an object than what its refusal is expected for.

    A mistake whose field the expected message names is meant; without a message, any.
    """
    kind, version = obj.get("kind"), obj.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(version, str):
        yield Problem(path, "needs apiVersion and kind: without them anything is refused")
        return
    for problem in [
        *kind_problems(kind, version, apis, path),
        *field_problems(kind, version, obj, path),
    ]:
        name = re.escape(str(problem.path[-1]))
        if message is not None and not re.search(rf"(?<!\w){name}(?!\w)", message):
            yield Problem(
                problem.path, f"{problem.message} (this is not what the refusal is expected for)"
            )


def kind_problems(
    kind: str, version: str | None, apis: tuple[str, ...], path: PathTuple
) -> Iterator[Problem]:
    """Report a kind that is misspelt, or that its API version lacks or does not always serve."""
    served = [root.rpartition("/")[0] for root in schema.roots() if _kind_of(root) == kind]
    if not served and version in apis and not any(version in root for root in schema.roots()):
        return
    if not served:
        kind_by_lower_case = {_kind_of(root).lower(): _kind_of(root) for root in schema.roots()}
        near = find_nearest(kind.lower(), kind_by_lower_case)
        if near is not None and _are_alike(kind.lower(), near):
            yield Problem(
                (*path, "kind"), f"unknown kind {kind!r}; did you mean {kind_by_lower_case[near]}?"
            )
        return
    if version is None or version in apis:
        return
    if version not in served:
        stable = schema.stable_version(kind)
        yield Problem(
            (*path, "apiVersion"), f"there is no {kind} in {version!r}; write apiVersion: {stable}"
        )
    elif _UNSTABLE.fullmatch(version.rpartition("/")[2]):
        yield Problem(
            (*path, "apiVersion"),
            f"{version} is off by default; add requires: {{apis: [{version}]}}, so that the"
            " scenario is skipped where it is not served",
        )


def _are_alike(left: str, right: str) -> bool:
    """Return whether two kinds differ by a letter or two, not by a word."""
    ratio = difflib.SequenceMatcher(None, left, right).ratio()
    return abs(len(left) - len(right)) <= 2 and ratio >= (0.8 if len(right) > 4 else 0.65)


def field_problems(
    kind: str, version: str | None, value: Any, path: PathTuple
) -> Iterator[Problem]:
    """Yield fields that a kind does not have, and values of the wrong type."""
    root = schema.root_of(kind, version)
    if root is None:
        return  # A kind that the table does not have cannot be checked.
    yield from find_misspelt_values(root, value, path)
    for mistake in schema.find_mistakes(root, value):
        field_path = (*path, *mistake.path)
        if isinstance(mistake, schema.UnknownField):
            field = str(mistake.path[-1])
            says = hint(field, schema.types()[mistake.owner])
            yield Problem(field_path, f"unknown field {field!r}; {says}")
        elif not _variable_may_fit(mistake):
            why = f": {mistake.why}" if mistake.why else ""
            yield Problem(
                field_path, f"must be {_word_type(mistake.shape)}, is {mistake.value!r:.60}{why}"
            )


def _variable_may_fit(mistake: schema.WrongType) -> bool:
    """Return whether a value holds a variable whose value has the right type."""
    value = mistake.value
    if not isinstance(value, str) or not VARIABLE.search(value):
        return False
    whole = VARIABLE.fullmatch(value)
    group = whole[1].partition(".")[0] if whole else ""
    if mistake.shape in _FITTING:
        return group == _FITTING[mistake.shape]
    if mistake.shape.startswith(schema.MAP) or mistake.shape in schema.types():
        return group == "config"
    return mistake.shape == "quantity"


_FITTING = {"[]string": "probe", "[]core/v1.Toleration": "tolerations", "int64": "worker"}
"""Type of a field -> the group of variables that has such values."""


def _word_type(shape: str) -> str:
    if shape.startswith(schema.LIST):
        return "a list"
    return _WORDS.get(shape, "an object with fields")


def _kind_of(root: str) -> str:
    return root.rpartition("/")[2]


_RESTART: Final = ("Always", "Never", "OnFailure")
_NODE_EFFECTS: Final = ("NoExecute", "NoSchedule", "PreferNoSchedule")
_DEVICE_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")

CHOICES: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "Container": {
        "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
        "restartPolicy": _RESTART,
    },
    "DeviceTaint": {"effect": _DEVICE_EFFECTS},
    "DeviceToleration": {"effect": _DEVICE_EFFECTS, "operator": ("Equal", "Exists")},
    "JobSpec": {"completionMode": ("Indexed", "NonIndexed")},
    "LabelSelectorRequirement": {"operator": ("DoesNotExist", "Exists", "In", "NotIn")},
    "NodeSelectorRequirement": {"operator": ("DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn")},
    "PodSpec": {"restartPolicy": _RESTART},
    "Taint": {"effect": _NODE_EFFECTS},
    "Toleration": {"effect": _NODE_EFFECTS, "operator": ("Equal", "Exists", "Gt", "Lt")},
}
"""Type -> field -> its values."""

_WITH_CHOICES: Final = frozenset(CHOICES)


def find_misspelt_values(shape: str, value: Any, path: PathTuple) -> Iterator[Problem]:
    """Yield values in an object that are like one of those that their field takes.

    ``shape`` is the object's type in the table of fields; what does not fit it is passed over.
    """
    for place, name, part in schema.list_parts(shape, value, _WITH_CHOICES, path):
        for key, choices in CHOICES[name.rpartition(".")[2]].items():
            item = part.get(key)
            if isinstance(item, str) and item and item not in choices:
                near = find_nearest(item, choices)
                if near is not None:
                    text = f"{item!r} must be one of {', '.join(choices)}; did you mean {near}?"
                    yield Problem((*place, key), text)
