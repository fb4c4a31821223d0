"""What an API server would say of an object: its own validation, asked without a server.

The words and field paths are the server's (`kubesim.validation`); a path is turned into that of the
author's document, which may be in an older version. Fields and types come first
(`conformance.scenario.lint.objects`): a server looks no further into what it cannot decode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

from conformance.scenario.documents.yamlfile import PathTuple, Problem, as_mapping, walk
from conformance.scenario.lint.manifest_claims import pod_specs
from kubesim.apiserver import decoding, disabled_fields, new_objects
from kubesim.apiserver.defaulting import default_requests_to_limits
from kubesim.pods import list_containers
from kubesim.resources import KINDS, find_removal
from kubesim.validation import Expressions, find_create_errors
from kubesim.validation.allocation import ADMIN_LABEL
from kubesim.validation.pod import check_devices
from reference_allocator.api import schema
from reference_allocator.gates import Gate, gates_for_version

_SEGMENT: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_POD_SPEC: Final = "core/v1.PodSpec"
_LENIENT: Final = {ADMIN_LABEL: "true"}
"""Labels of the namespace: what they permit is judged with it (`given_objects`)."""


@dataclass(frozen=True)
class ApiRules:
    """The rules of an API server.

    Attributes:
        kubernetes: its minor, for example ``1.37``.
        gates_off: feature gates that are off; all others of the minor are on.
    """

    kubernetes: str
    gates_off: frozenset[str] = frozenset()

    @cached_property
    def gates(self) -> Mapping[str, Gate]:
        """The feature gates that the minor has."""
        return gates_for_version(self.kubernetes)

    @cached_property
    def _enabled(self) -> Mapping[str, bool]:
        return {name: name not in self.gates_off for name in self.gates}

    @cached_property
    def _expressions(self) -> Expressions:
        return Expressions(self.kubernetes, self._enabled)

    def list_refusals(self, obj: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield why a new object of DRA would be refused, and which fields would be dropped.

        Args:
            obj: an object in which `schema.find_mistakes` finds none.
        """
        kind = KINDS.get(str(obj.get("kind")))
        api_version = str(obj.get("apiVersion"))
        if kind is None or api_version not in kind.api_versions:
            return
        removal = find_removal(api_version.rpartition("/")[2], kind.name)
        if 0 < removal <= int(self.kubernetes.partition(".")[2]):
            text = f"{api_version} is not served from Kubernetes 1.{removal} on"
            yield Problem(("apiVersion",), f"{text}; write {kind.api_version}")
            return
        for gate in kind.gates:
            yield from self._explain_gate(gate, ("kind",), f"{kind.name} is not served")
        stored = new_objects.take_in(kind, dict(obj))
        fields = disabled_fields.list_gated_fields(stored)
        off = [item for item in fields if not all(map(self._is_on, item[2]))]
        if off:
            paths = {id(value): path for path, value in walk(stored)}
            for struct, field, gates in off:
                gate = next(name for name in gates if not self._is_on(name))
                place = "".join(f"[{key}]" for key in (*paths[id(struct)], field))
                path = find_author_path(obj, place)
                yield from self._explain_gate(gate, path, f"{field} is dropped without a word")
        if off or self.gates_off:
            disabled_fields.drop_disabled_fields(self._enabled, self.kubernetes, stored)
        for error in find_create_errors(kind, stored, _LENIENT, self._expressions):
            yield Problem(find_author_path(obj, error.path), error.body)

    def _is_on(self, gate: str) -> bool:
        return gate in self.gates and self.gates[gate].default

    def _explain_gate(self, name: str, path: PathTuple, effect: str) -> Iterator[Problem]:
        gate = self.gates.get(name)
        if gate is None:
            text = f"is not in Kubernetes {self.kubernetes}, which has no feature gate {name}"
            yield Problem(path, text)
        elif not gate.default:
            text = f"{effect}, unless the feature gate {name} is on"
            about = f"{gate.stage.lower()} and off by default in Kubernetes {self.kubernetes}"
            yield Problem(path, f"{text} ({about})", "warning")


@cache
def rules_of(kubernetes: str, gates_off: frozenset[str] = frozenset()) -> ApiRules:
    """Return the rules of a minor, made once."""
    return ApiRules(kubernetes, gates_off)


def list_pod_refusals(data: Any) -> Iterator[Problem]:
    """Yield what would be refused of what pods in an object ask for: claims, extended resources."""
    for path, spec in pod_specs(data):
        asked = _reduce_to_devices(spec)
        if not asked:
            continue
        if any(schema.find_mistakes(_POD_SPEC, asked)):
            continue  # said already where the type is known; a custom resource may mean another
        decoded = decoding.copy_decoded(_POD_SPEC, asked)
        for container in list_containers(decoded):
            default_requests_to_limits(container.get("resources") or {})
        for error in check_devices(decoded, ""):
            yield Problem((*path, *find_author_path(spec, error.path)), error.body)


def _reduce_to_devices(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a pod's spec is about devices; elements keep their places.

    Nothing where it asks for nothing.
    """
    claims = spec.get("resourceClaims")
    reduced: dict[str, Any] = {"resourceClaims": claims}
    asks = claims is not None
    for field in ("containers", "initContainers"):
        containers = spec.get(field)
        reduced[field] = []
        for container in containers if isinstance(containers, list) else ():
            resources = as_mapping(container).get("resources")
            asks = asks or resources is not None
            reduced[field].append({"resources": resources})
    return reduced if asks else {}


def find_author_path(obj: Any, field_path: str) -> PathTuple:
    """Return the place in a document that a path of the stored object means.

    v1beta1 has no ``exactly``, and the fields of a device below ``basic``.
    """
    path: list[str | int] = []
    for bracketed, name in _SEGMENT.findall(field_path):
        key: str | int = bracketed or name
        if isinstance(obj, list) and bracketed.isdigit():
            key = int(bracketed)
            obj = obj[key] if key < len(obj) else None
        elif isinstance(obj, dict) and key not in obj and key == "exactly":
            continue
        elif isinstance(obj, dict):
            if key not in obj and key in as_mapping(obj.get("basic")):
                path.append("basic")
                obj = obj["basic"]
            obj = obj.get(key)
        path.append(key)
    return tuple(path)
