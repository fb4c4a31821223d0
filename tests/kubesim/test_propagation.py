"""What becomes of what an object owns when that is deleted, by the policy of the deletion."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from conformance.targets.reference.scope import ReferenceScope
from kube.values import Obj, Query, Ref, Request
from tests.kubesim import kit
from tests.kubesim.conftest import Open, new_scope

Verb = Literal["delete", "deletecollection"]
OWNER = kit.claim_ref("owner")


@pytest.fixture
def scope(open_target: Open) -> ReferenceScope:
    """No nodes; claims own each other, as any objects could."""
    return new_scope(open_target(nodes=()))


def make(scope: ReferenceScope, name: str, *owners: Obj, **reference: Any) -> Obj:
    obj = kit.claim(name)
    obj["metadata"]["ownerReferences"] = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": True,
            **reference,
        }
        for owner in owners
    ]
    return scope.create(obj)


def delete(scope: ReferenceScope, policy: str, ref: Ref = OWNER, verb: Verb = "delete") -> None:
    scope.send(Request(verb, ref, {"propagationPolicy": policy}, labels={"of": "test"}))


def hold(scope: ReferenceScope, name: str) -> None:
    scope.patch(kit.claim_ref(name), {"metadata": {"finalizers": ["example.com/wait"]}})


def there(scope: ReferenceScope) -> list[str]:
    """Names; of those that are being deleted with a minus."""
    return [
        f"{'-' * ('deletionTimestamp' in obj['metadata'])}{obj['metadata']['name']}"
        for obj in scope.find(Query(kit.DRA, "ResourceClaim"))
    ]


def owners(scope: ReferenceScope, name: str) -> list[str]:
    references = kit.get(scope, kit.claim_ref(name))["metadata"].get("ownerReferences") or []
    return [reference["name"] for reference in references]


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_what_an_object_owns_goes_with_it(scope: ReferenceScope, policy: str) -> None:
    owner = make(scope, "owner")
    make(scope, "its", make(scope, "child", owner))
    make(scope, "other")
    delete(scope, policy)
    assert there(scope) == ["other"]


@pytest.mark.parametrize("verb", ["delete", "deletecollection"])
def test_orphans_stay_with_their_other_owners(scope: ReferenceScope, verb: Verb) -> None:
    owner, second = make(scope, "owner"), make(scope, "second")
    make(scope, "alone", owner)
    make(scope, "child", owner, second)
    scope.patch(OWNER, {"metadata": {"labels": {"of": "test"}}})
    delete(scope, "Orphan", verb=verb)
    assert there(scope) == ["alone", "child", "second"]
    assert (owners(scope, "alone"), owners(scope, "child")) == ([], ["second"])


def test_in_the_foreground_the_owner_goes_last(scope: ReferenceScope) -> None:
    make(scope, "its", make(scope, "child", make(scope, "owner")))
    hold(scope, "its")
    delete(scope, "Foreground")
    assert there(scope) == ["-child", "-its", "-owner"]
    scope.patch(kit.claim_ref("its"), {"metadata": {"finalizers": None}})
    assert there(scope) == []


def test_what_does_not_block_is_deleted_and_not_waited_for(scope: ReferenceScope) -> None:
    make(scope, "child", make(scope, "owner"), blockOwnerDeletion=False)
    hold(scope, "child")
    delete(scope, "Foreground")
    assert there(scope) == ["-child"]


def test_what_others_own_stays_with_them(scope: ReferenceScope) -> None:
    make(scope, "child", make(scope, "owner"), make(scope, "second"))
    delete(scope, "Foreground")
    assert (there(scope), owners(scope, "child")) == (["child", "second"], ["second"])


def test_a_later_deletion_in_the_background_waits_no_more(scope: ReferenceScope) -> None:
    make(scope, "child", make(scope, "owner"))
    hold(scope, "child")
    delete(scope, "Foreground")
    delete(scope, "Background")
    assert there(scope) == ["-child"]


def test_pods_in_the_foreground_end_as_any_others(open_target: Open) -> None:
    scope = new_scope(open_target())
    scope.create(kit.device_class())
    scope.create(kit.template("own"))
    pod = kit.pod("p", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "own"}])
    scope.create(pod)
    kit.until(scope, lambda: kit.get(scope, kit.pod_ref("p"))["status"]["phase"] == "Running")
    delete(scope, "Foreground", kit.pod_ref("p"))
    kit.until(scope, lambda: scope.find(Query("v1", "Pod")) == [])
    assert there(scope) == []


def test_a_gone_owner_beside_another_is_forgotten(scope: ReferenceScope) -> None:
    first, second = make(scope, "owner"), make(scope, "second")
    make(scope, "child", first, second)
    delete(scope, "Background")
    assert {*there(scope)} == {"second", "child"}
    assert owners(scope, "child") == ["second"]


def test_an_owner_is_looked_for_by_its_name_too(scope: ReferenceScope) -> None:
    """As a reference whose name or uid is wrong is one to an object that is not there."""
    owner = make(scope, "owner")
    renamed = {**owner, "metadata": {**owner["metadata"], "name": "another"}}
    make(scope, "child", renamed)
    assert there(scope) == ["owner"]
