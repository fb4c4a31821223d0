"""Defects of what the API server refuses of claims, templates and classes, and of what it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.values import Obj
from kubesim.apiserver.server import ApiServer
from kubesim.resources import Kind
from kubesim.store import clone
from kubesim.world import World
from reference_allocator.api import schema
from tests.mutants.apiserver.overlooked_fields import (
    CHANGED,
    CLAIM,
    CLASS,
    NEW,
    TEMPLATE,
    overlooks,
)
from tests.mutants.replacing import Defects, Mutation, Original, instead, replace

Create = Callable[..., Obj]


def ignores_unknown_fields(*below: str) -> Mutation:
    """Fields that it does not know are dropped, everywhere or in objects below these fields."""

    @instead(ApiServer.create)
    def mutate(_: World, original: Create, obj: Obj, *args: Any) -> Obj:
        known = clone(obj)
        root = schema.root_of(obj["kind"], obj["apiVersion"])
        for mistake in schema.find_mistakes(root, obj) if root else ():
            if isinstance(mistake, schema.UnknownField) and holder_of(mistake) in below:
                holder: Any = known
                for step in mistake.path[:-1]:
                    holder = holder[step]
                del holder[mistake.path[-1]]
        return original(known, *args)

    return mutate


def holder_of(mistake: schema.UnknownField) -> str:
    """The field below which an unknown one stands, for example ``requests``."""
    names = [step for step in mistake.path[:-1] if isinstance(step, str)]
    return names[-1] if names else ""


EXACTLY = r"^spec\.devices\.requests\[\d+\]\.exactly\."


SUB = r"^spec\.devices\.requests\[\d+\]\.firstAvailable\[\d+\]\."


REFERENCE = "must be the name of a request"


ALTERNATIVE = r'.*"[^"/]+/[^"/]+": '


OF_CONSTRAINT = r"^spec\.devices\.constraints\[\d+\]"


OF_CONFIG = r"^spec\.devices\.config\[\d+\]"


_LIMITS: Defects = {
    "claim-takes-33-requests": overlooks(r"^spec\.devices\.requests: Too many: 33:"),
    "claim-takes-33-constraints": overlooks(r"^spec\.devices\.constraints: Too many: 33:"),
    "claim-takes-33-configs": overlooks(r"^spec\.devices\.config: Too many: 33:"),
    "request-takes-33-selectors": overlooks(EXACTLY + "selectors: Too many: 33:"),
    "alternative-takes-33-selectors": overlooks(SUB + "selectors: Too many: 33:"),
    "request-takes-9-alternatives": overlooks("firstAvailable: Too many: 9:"),
    "class-takes-33-selectors": overlooks(r"^spec\.selectors: Too many: 33:", CLASS),
    "class-takes-33-configs": overlooks(r"^spec\.config: Too many: 33:", CLASS),
    "template-lists-have-no-limit": overlooks(": Too many: ", TEMPLATE),
    "allocation-takes-33-results": overlooks("results: Too many: 33:"),
    "claim-takes-257-consumers": overlooks("reservedFor: Too many: 257:"),
    "claim-parameters-have-no-limit": overlooks("parameters: Too long"),
    "class-parameters-have-no-limit": overlooks("parameters: Too long", CLASS),
    "claim-expressions-cost-nothing": overlooks("too complex, exceeds cost limit"),
    "class-expressions-cost-nothing": overlooks("too complex, exceeds cost limit", CLASS),
    "template-expressions-cost-nothing": overlooks("too complex, exceeds cost limit", TEMPLATE),
}


_NAMES: Defects = {
    "request-name-of-any-form": overlooks(r"^spec\.devices\.requests\[\d+\]\.name: Invalid"),
    "alternative-name-of-any-form": overlooks(SUB + "name: Invalid"),
    "requests-of-one-name": overlooks(r"^spec\.devices\.requests\[\d+\]: Duplicate"),
    "alternatives-of-one-name": overlooks(r"firstAvailable\[\d+\]: Duplicate"),
    "constraint-names-unknown-request": overlooks(OF_CONSTRAINT + ".*" + REFERENCE),
    "config-names-unknown-request": overlooks(OF_CONFIG + ".*" + REFERENCE),
    "config-names-unknown-alternative": overlooks(OF_CONFIG + ALTERNATIVE + REFERENCE),
    "reference-of-three-parts": overlooks(r'"[^"]*/[^"]*/[^"]*": ' + REFERENCE),
    "constraint-lists-request-twice": overlooks(OF_CONSTRAINT + r"\.requests\[\d+\]: Duplicate"),
    "config-lists-request-twice": overlooks(OF_CONFIG + r"\.requests\[\d+\]: Duplicate"),
    "match-attribute-without-domain": overlooks("matchAttribute: .*fully qualified"),
    "match-attribute-of-any-form": overlooks("matchAttribute: .*(C identifier|RFC 1123|Too long)"),
    "constraint-without-attribute": overlooks(OF_CONSTRAINT + ": Required"),
    "class-name-of-any-form": overlooks(EXACTLY + "deviceClassName: Invalid"),
    "request-without-class": overlooks(EXACTLY + "deviceClassName: Required"),
    "alternative-without-class": overlooks(SUB + "deviceClassName: Required"),
    "request-of-nothing": overlooks(r"^spec\.devices\.requests\[\d+\]: Required"),
    "request-of-both": overlooks(r"^spec\.devices\.requests\[\d+\]: Invalid.*exactly one of"),
    "config-without-driver": overlooks(r"opaque\.driver: Required"),
    "config-driver-of-64-bytes": overlooks(r"opaque\.driver: Too long"),
    "config-driver-of-any-form": overlooks(r"opaque\.driver: Invalid"),
    "config-without-opaque": overlooks(r"config\[\d+\]\.opaque: Required"),
    "parameters-may-be-missing": overlooks("parameters: Required"),
    "parameters-need-no-object": overlooks("parameters: Invalid"),
}


_VALUES: Defects = {
    "exists-with-value": overlooks("value: .*must be empty for operator"),
    "toleration-key-of-any-form": overlooks(r"tolerations\[\d+\]\.key"),
    "toleration-value-of-any-form": overlooks(r"tolerations\[\d+\]\.value: .*label"),
    "toleration-effect-none": overlooks(r"tolerations\[\d+\]\.effect"),
    "alternative-tolerations-are-not-checked": overlooks(SUB + "tolerations"),
    "all-with-count": overlooks("count: .*must not be specified when"),
    "count-may-be-negative": overlooks(EXACTLY + "count: .*greater than zero"),
    "alternative-of-unknown-mode": overlooks(SUB + "allocationMode"),
    "selector-without-cel": overlooks(r"selectors\[\d+\]\.cel: Required"),
    "claim-expressions-need-not-compile": overlooks(EXACTLY + ".*expression: Invalid"),
    "alternative-expressions-need-not-compile": overlooks(SUB + ".*expression: Invalid"),
    "template-expressions-need-not-compile": overlooks("expression: Invalid", TEMPLATE),
    "class-expressions-need-not-compile": overlooks("expression: Invalid", CLASS, at=(NEW,)),
    "expressions-need-not-be-bool": overlooks("must evaluate to bool", CLAIM, TEMPLATE, CLASS),
    "derived-attributes-of-one-name": overlooks(r"derivedAttributes\[\d+\]: Duplicate"),
    "derived-attribute-without-constraint": overlooks("must be referenced by at least one"),
    "derived-attributes-cost-nothing": overlooks("total cost of derived"),
    "derived-attributes-need-not-compile": overlooks(r"derivedAttributes\[\d+\]\.expression: Inv"),
    "class-updates-are-not-checked": overlooks("^spec", CLASS, at=(CHANGED,)),
    "class-names-of-any-form": overlooks(r"^metadata\.name: ", CLASS),
    "templates-are-not-checked": overlooks(r"^spec\.spec", TEMPLATE),
    "template-metadata-of-any-form": overlooks(r"^spec\.metadata\.labels", TEMPLATE),
    "template-metadata-has-names": overlooks(r"^spec\.metadata\..*cannot be set", TEMPLATE),
    "alternatives-take-admin-access": ignores_unknown_fields("firstAvailable"),
    "ignores-unknown-fields-of-exactly": ignores_unknown_fields("exactly"),
    "ignores-unknown-fields-of-classes": ignores_unknown_fields("spec", "selectors", "config"),
}


def _first_request_only(world: World) -> None:
    """Whether admin access is asked for is looked up in the first request of a claim."""
    not_first = r"^spec\.devices\.requests\[[1-9]\d*\]\.adminAccess: "
    overlooks(not_first, CLAIM, TEMPLATE)(world)


def _any_label_value(world: World) -> None:
    """A namespace may have admin access once it has the label, whatever its value."""
    label = "resource.kubernetes.io/admin-access"

    def check(original: Original, kind: Kind, obj: Obj, labels: Any) -> None:
        original(kind, obj, {**labels, label: "true"} if label in labels else labels)

    replace(world.api.validate_new, check)


ADMIN: Defects = {
    "admin-access-in-templates": overlooks("adminAccess", TEMPLATE),
    "admin-access-of-second-requests": _first_request_only,
    "admin-label-of-any-value": _any_label_value,
    "admin-access-in-status": lambda world: replace(
        world.api._labels_of_namespace, lambda *_: {"resource.kubernetes.io/admin-access": "true"}
    ),
}


_RESULT = r"^status\.allocation\.devices\.results\[\d+\]\."


DEFECTS: Defects = {
    "admin-access-anywhere": overlooks("adminAccess", CLAIM, TEMPLATE, at=(NEW,)),
    "ignores-unknown-fields-of-claims": ignores_unknown_fields("spec"),
    "ignores-unknown-fields-of-requests": ignores_unknown_fields("requests"),
    "takes-any-resource-name": overlooks("^spec.extendedResourceName", CLASS, at=(NEW,)),
    **_LIMITS,
    **_NAMES,
    **_VALUES,
    **ADMIN,
    "consumers-after-the-first-are-not-checked": overlooks(r"^status\.reservedFor\[[1-9]\d*\]\."),
    "template-annotations-of-any-form": overlooks(r"^spec\.metadata\.annotations", TEMPLATE),
    "allocation-conditions-of-any-form": overlooks(_RESULT + "binding"),
}
