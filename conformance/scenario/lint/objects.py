"""Are the manifests of a scenario such that an API server takes them as they are meant?

Fields are compared with those of the Kubernetes API (`conformance.fields`), strictly, as the suite
creates objects. What is expected to be ``rejected`` is wrong on purpose, but only in the way that
the expectation says.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from conformance import fields
from conformance.fields import UnknownField, WrongType
from conformance.scenario.expectations import ObjectExpectation, Rejected, RejectedExpectation
from conformance.scenario.lint.choices import misspelt
from conformance.scenario.lint.claims import Problem
from conformance.scenario.lint.manifests import manifest_problems
from conformance.scenario.model import Scenario
from conformance.scenario.near import hint, nearest
from conformance.scenario.variables import VARIABLE
from conformance.scenario.yamlfile import PathTuple

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_UNSTABLE = re.compile(r"v\d+(alpha|beta)\d+")
NOT_FOUND, BAD_REQUEST = 404, 400
STATUS_REASONS = (
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
)
"""metav1.StatusReason (staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go)."""
_WORDS = {
    "bool": "true or false",
    "datetime": "a time as text",
    "int": "a whole number",
    "quantity": "a quantity like 4 or 16Gi",
    "str": "text",
}


def check_manifests(scenario: Scenario) -> Iterator[Problem]:
    """Problems of every object that is applied, of every patch, and of every ``match``."""
    apis = scenario.spec.requires.apis
    for index, step in enumerate(scenario.spec.steps):
        place: PathTuple = ("spec", "steps", index)
        for position, manifest in enumerate(step.apply or ()):
            yield from _manifest(manifest, apis, (*place, "apply", position))
        for position, deleted in enumerate(step.delete or ()):
            where = (*place, "delete", position)
            yield from _kind(deleted.kind, deleted.api_version, apis, where)
        if step.patch is not None:
            kind, version = step.patch.kind, step.patch.api_version
            yield from _kind(kind, version, apis, (*place, "patch"))
            yield from _fields(kind, version, step.patch.patch, (*place, "patch", "patch"))
        for position, expectation in enumerate(step.expect or ()):
            if isinstance(expectation, RejectedExpectation):
                where = (*place, "expect", position, "rejected")
                yield from _rejected(expectation.rejected, apis, where)
            for key in ("object", "objects", "none"):
                selector = getattr(expectation, key, None)
                if selector is not None:
                    kind, version = selector.kind, selector.api_version
                    where = (*place, "expect", position)
                    yield from _kind(kind, version, apis, (*where, key))
                    if isinstance(expectation, ObjectExpectation):
                        yield from _fields(kind, version, expectation.match, (*where, "match"))


def _manifest(manifest: Mapping[str, Any], apis: tuple[str, ...], path: PathTuple) -> Iterator[Any]:
    for field in ("apiVersion", "kind"):
        if not isinstance(manifest.get(field), str) or not manifest[field]:
            yield Problem((*path, field), "is required but missing, or not text")
            return
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if name is None:
        yield Problem(
            (*path, "metadata", "name"),
            "is required but missing: objects are found, and removed again, by their names",
        )
    elif isinstance(name, str) and not _NAME.fullmatch(VARIABLE.sub("x", name)):
        yield Problem(
            (*path, "metadata", "name"),
            f"{name!r} is no name in Kubernetes: use a-z, 0-9, '-' and '.', with a letter or digit"
            " at both ends",
        )
    explained = [
        Problem((*path, *problem.path), problem.message)
        for problem in manifest_problems(manifest)
        if problem.severity == "error"
    ]
    yield from explained
    places = {problem.path for problem in explained}
    rest = [
        *_kind(manifest["kind"], manifest["apiVersion"], apis, path),
        *_fields(manifest["kind"], manifest["apiVersion"], manifest, path),
    ]
    yield from (problem for problem in rest if problem.path not in places)


def _rejected(wanted: Rejected, apis: tuple[str, ...], path: PathTuple) -> Iterator[Problem]:
    """What else is wrong in an object than what its refusal is expected for."""
    if wanted.reason is not None and wanted.reason not in STATUS_REASONS:
        says = hint(wanted.reason, STATUS_REASONS)
        yield Problem((*path, "reason"), f"no API server says {wanted.reason!r}; {says}")
    place = (*path, "object")
    kind, version = wanted.object.get("kind"), wanted.object.get("apiVersion")
    if wanted.code == NOT_FOUND or wanted.reason == "NotFound":
        return  # Nobody looks into an object whose kind or version is not served.
    if not isinstance(kind, str) or not isinstance(version, str):
        yield Problem(place, "needs apiVersion and kind: without them anything is refused")
        return
    anyhow = wanted.code in {None, BAD_REQUEST} and wanted.message is None
    for problem in [
        *_kind(kind, version, apis, place),
        *_fields(kind, version, wanted.object, place),
    ]:
        name = re.escape(str(problem.path[-1]))
        if not anyhow and not re.search(rf"(?<!\w){name}(?!\w)", wanted.message or ""):
            yield Problem(
                problem.path, f"{problem.message} (this is not what the refusal is expected for)"
            )


def _kind(
    kind: str, version: str | None, apis: tuple[str, ...], path: PathTuple
) -> Iterator[Problem]:
    """A kind that is misspelt, or of an API version that has none such or is not always served."""
    served = [root.rpartition("/")[0] for root in fields.roots() if _kind_of(root) == kind]
    if not served and version in apis and not any(version in root for root in fields.roots()):
        return
    if not served:
        known = {_kind_of(root).lower(): _kind_of(root) for root in fields.roots()}
        near = nearest(kind.lower(), known)
        if near is not None and _alike(kind.lower(), near):
            yield Problem((*path, "kind"), f"unknown kind {kind!r}; did you mean {known[near]}?")
        return
    if version is None or version in apis:
        return
    if version not in served:
        stable = fields.stable_version(kind)
        yield Problem(
            (*path, "apiVersion"), f"there is no {kind} in {version!r}; write apiVersion: {stable}"
        )
    elif _UNSTABLE.fullmatch(version.rpartition("/")[2]):
        yield Problem(
            (*path, "apiVersion"),
            f"{version} is off by default; add requires: {{apis: [{version}]}}, so that the"
            " scenario is skipped where it is not served",
        )


def _alike(left: str, right: str) -> bool:
    """Two kinds that differ by a letter or two, not by a word."""
    ratio = difflib.SequenceMatcher(None, left, right).ratio()
    return abs(len(left) - len(right)) <= 2 and ratio >= (0.8 if len(right) > 4 else 0.65)


def _fields(kind: str, version: str | None, value: Any, path: PathTuple) -> Iterator[Problem]:
    root = fields.root_of(kind, version)
    if root is None:
        return  # A kind that the table does not have cannot be checked.
    yield from misspelt(root, value, path)
    for mistake in fields.mistakes(root, value):
        place = (*path, *mistake.path)
        if isinstance(mistake, UnknownField):
            field = str(mistake.path[-1])
            says = hint(field, fields.types()[mistake.owner])
            yield Problem(place, f"unknown field {field!r}; {says}")
        elif not _may_fit(mistake):
            why = f": {mistake.why}" if mistake.why else ""
            yield Problem(place, f"must be {_words(mistake.shape)}, is {mistake.value!r:.60}{why}")


def _may_fit(mistake: WrongType) -> bool:
    """Whether a value holds a variable whose value has the right type."""
    value = mistake.value
    if not isinstance(value, str) or not VARIABLE.search(value):
        return False
    whole = VARIABLE.fullmatch(value)
    group = whole[1].partition(".")[0] if whole else ""
    if mistake.shape == "list[str]":
        return group == "probe"
    if mistake.shape.startswith("map[") or mistake.shape in fields.types():
        return group == "config"
    return mistake.shape == "quantity"


def _words(shape: str) -> str:
    if shape.startswith("list["):
        return "a list"
    return _WORDS.get(shape, "an object with fields")


def _kind_of(root: str) -> str:
    return root.rpartition("/")[2]
