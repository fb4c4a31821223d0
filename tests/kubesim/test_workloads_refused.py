"""What of a workload is refused, as it is made and as it is changed."""

from __future__ import annotations

import pytest

from conformance.targets.reference.scope import ReferenceScope
from kube.errors import ApiError
from kube.values import Obj, Ref
from tests.kubesim import kit

SELECTS_NONE: Obj = {"selector": {}}
SELECTS_OTHERS: Obj = {"selector": {"matchLabels": {"app": "x"}}}
NEGATIVE = "must be greater than or equal to 0"


def rolling(surge: int | str, unavailable: int | str) -> Obj:
    return {"strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}


REFUSED: list[tuple[str, Obj, str]] = [
    ("DaemonSet", SELECTS_NONE, "empty selector is invalid for daemonset"),
    ("DaemonSet", SELECTS_OTHERS, "`selector` does not match template `labels`"),
    ("Deployment", SELECTS_NONE, "empty selector is invalid for deployment"),
    ("Deployment", SELECTS_OTHERS, "`selector` does not match template `labels`"),
    ("Deployment", {"replicas": -1}, NEGATIVE),
    ("Deployment", {"strategy": {"type": "Other"}}, 'supported values: "Recreate", "Rolling'),
    (
        "Deployment",
        {"strategy": {"type": "Recreate", "rollingUpdate": {}}},
        "may not be specified when strategy `type` is 'Recreate'",
    ),
    ("Deployment", rolling(0, "0%"), "may not be 0 when `maxSurge` is 0"),
    ("Deployment", rolling("1", 0), "a valid percent string must be a numeric string"),
    ("Deployment", rolling(-1, 0), NEGATIVE),
    ("StatefulSet", SELECTS_NONE, "empty selector is invalid for statefulset"),
    ("StatefulSet", {"replicas": -1}, NEGATIVE),
    ("StatefulSet", {"podManagementPolicy": "Ordered"}, "must be 'OrderedReady' or 'Parallel'"),
    ("StatefulSet", {"updateStrategy": {"type": "Other"}}, "must be 'RollingUpdate' or 'OnDelete'"),
    (
        "StatefulSet",
        {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {}}},
        "only allowed for updateStrategy 'RollingUpdate'",
    ),
]


@pytest.mark.parametrize(("kind", "spec", "why"), REFUSED)
def test_what_is_not_valid_is_refused(
    hollow: ReferenceScope, kind: str, spec: Obj, why: str
) -> None:
    with pytest.raises(ApiError) as error:
        hollow.create(kit.workload(kind, **spec))
    assert error.value.code == 422
    assert why in error.value.message


@pytest.mark.parametrize(("kind", "name"), [("StatefulSet", "web.example"), ("Deployment", "-")])
def test_its_name_is_refused(hollow: ReferenceScope, kind: str, name: str) -> None:
    made = kit.workload(kind)
    made["metadata"]["name"] = name
    with pytest.raises(ApiError, match=r"metadata\.name"):
        hollow.create(made)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Deployment", {"selector": {"matchLabels": {"version": "1"}}}),
        ("StatefulSet", {"podManagementPolicy": "Parallel"}),
        ("StatefulSet", {"serviceName": "other"}),
        ("StatefulSet", {"selector": None}),
    ],
)
def test_what_cannot_be_changed(hollow: ReferenceScope, kind: str, spec: Obj) -> None:
    hollow.create(kit.workload(kind))
    with pytest.raises(ApiError, match="field is immutable") as error:
        hollow.patch(Ref("apps/v1", kind, "web"), {"spec": spec})
    assert f"spec.{next(iter(spec))}" in error.value.message
