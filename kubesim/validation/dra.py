"""Checks of claims, claim templates and classes, but for the requests in them.

Source: pkg/apis/resource/validation/validation.go and pkg/registry/resource (admin access).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kube.values import Obj
from kubesim.goforms import drop_unset, load_go_names, show_internal
from kubesim.validation import device_requests, names
from kubesim.validation.allocation import ADMIN_LABEL, admin_refusal
from kubesim.validation.constraints import Expressions
from kubesim.validation.errors import FieldError, check_each, forbidden, invalid
from reference_allocator.api.limits import CONFIGS_MAX
from reference_allocator.api.names import label_key_problems

Labels = Mapping[str, str]
_LOOKED_INTO_UNTIL: Final = 34


def check_claim(
    claim: Obj, namespace_labels: Labels, expressions: Expressions
) -> Iterator[FieldError]:
    """Check a new ResourceClaim, in a namespace with these labels."""
    spec = claim.get("spec") or {}
    yield from _check_admin_access(spec, namespace_labels)
    yield from device_requests.check_claim_spec(spec, "spec", expressions)


def check_template(
    template: Obj, namespace_labels: Labels, expressions: Expressions
) -> Iterator[FieldError]:
    """Check a new ResourceClaimTemplate, in a namespace with these labels."""
    inner = (template.get("spec") or {}).get("spec") or {}
    yield from _check_admin_access(inner, namespace_labels)
    yield from _check_template_spec(template, expressions)


def check_template_update(new: Obj, old: Obj, expressions: Expressions) -> Iterator[FieldError]:
    """Check that the spec of a ResourceClaimTemplate is one, and did not change."""
    yield from _check_template_spec(new, expressions)
    if drop_unset(new).get("spec") != old.get("spec"):
        value = show_internal("resource/v1.ResourceClaimTemplateSpec", new.get("spec") or {})
        yield invalid("spec", value, "field is immutable")


def _check_template_spec(template: Obj, expressions: Expressions) -> Iterator[FieldError]:
    spec = template.get("spec") or {}
    meta = spec.get("metadata") or {}
    yield from names.check_annotation_keys(
        meta.get("annotations") or {}, "spec.metadata.annotations"
    )
    yield from names.check_labels(meta.get("labels") or {}, "spec.metadata.labels")
    for field in load_go_names()["meta/v1.ObjectMeta"]:
        if meta.get(field) is not None and field not in {"annotations", "labels"}:
            name = "uID" if field == "uid" else field  # as Go names it, with a small letter
            yield forbidden(f"spec.metadata.{name}", "cannot be set")
    inner = spec.get("spec") or {}
    yield from device_requests.check_claim_spec(inner, "spec.spec", expressions)


def check_immutable_spec(new: Obj, old: Obj, server: Expressions) -> Iterator[FieldError]:
    """Check that the spec of a claim did not change; until 1.34 it is looked into, too."""
    if server.minor <= _LOOKED_INTO_UNTIL:
        yield from device_requests.check_claim_spec(new.get("spec") or {}, "spec", server)
    if drop_unset(new).get("spec") != old.get("spec"):
        yield invalid("spec", None, "field is immutable")


def check_class(
    device_class: Obj, old: Obj | None, expressions: Expressions
) -> Iterator[FieldError]:
    """Check a DeviceClass; selectors that a change left as they were are not looked into."""
    spec = device_class.get("spec") or {}
    selectors = spec.get("selectors") or []
    stored = old is not None and selectors == ((old.get("spec") or {}).get("selectors") or [])
    checked = None if stored else expressions
    yield from device_requests.check_selectors(selectors, "spec.selectors", checked)
    configs = spec.get("config") or []
    yield from check_each(configs, CONFIGS_MAX, device_requests.check_device_config, "spec.config")
    extended = spec.get("extendedResourceName")
    if extended is not None:
        for problem in _extended_resource_problems(extended):
            yield invalid("spec.extendedResourceName", extended, problem)


def _extended_resource_problems(name: str) -> Iterator[str]:
    """Yield the problems of an ExtendedResourceName (apimachinery/pkg/api/validate/strfmt.go)."""
    if "/" not in name:
        yield "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
    elif "kubernetes.io/" in name:
        yield 'must not have "kubernetes.io/" domain'
    if name.startswith("requests."):
        yield 'must not have "requests." prefix'
    yield from label_key_problems(f"requests.{name}")


def _check_admin_access(spec: Obj, namespace_labels: Labels) -> Iterator[FieldError]:
    requests = (spec.get("devices") or {}).get("requests") or []
    admin_requests = [
        bool((request.get("exactly") or {}).get("adminAccess")) for request in requests
    ]
    if any(admin_requests) and namespace_labels.get(ADMIN_LABEL) != "true":
        # The path lacks "exactly" (and a template's second "spec") upstream, too.
        yield admin_refusal(f"spec.devices.requests[{admin_requests.index(True)}].adminAccess")
