"""Rights and admission policies of ci/deploy, asked of a real API server; no root, no node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.cli import deployment
from tests.cli.dra_objects import VERSIONS, bad_config, claim, good_config, slice_of
from tests.cli.plain_client import Api, Json, RefusedError, eventually
from tests.localkube.pool import Shared
from tests.nvml_driver.test_deploy import CASES

pytestmark = [pytest.mark.needs_go, pytest.mark.slow]

NAMESPACE = "nvml-dra-driver"
DRY = "?dryRun=All&fieldValidation=Strict"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


class Users(NamedTuple):
    """The API server as each of them sees it."""

    admin: Api
    driver: Api
    """The driver's pod on node-1."""
    account: Api
    """The driver's account, without a pod."""
    default: Api
    """Another account of the driver's namespace."""


@pytest.fixture(scope="module")
def users(control_plane: Shared) -> Iterator[Users]:
    """The base, applied to a control plane; a bad claim was there before it."""
    manifests = deployment.render(deployment.BASE)
    admin = control_plane.admin
    admin.create(claim("older", bad_config()))
    for one in manifests:
        admin.apply(one)
    pod = driver_pod(manifests)
    for name in ("nvml-dra-driver", "default"):  # made a moment after the namespace
        wait_for_account(admin, name)
    admin.create(pod)
    eventually(lambda: not accepts(admin, claim("bad", bad_config())), "policies in force")
    name = pod["metadata"]["name"]
    found = Users(
        admin,
        admin.as_user(admin.token(NAMESPACE, "nvml-dra-driver", name)),
        admin.as_user(admin.token(NAMESPACE, "nvml-dra-driver")),
        admin.as_user(admin.token(NAMESPACE, "default")),
    )
    eventually(lambda: not accepts(found.driver, slice_of("node-2")), "policies in force")
    yield found
    for each in found[1:]:
        each.close()
    admin.ask("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")  # no kubelet says that it ended


def driver_pod(manifests: list[Json]) -> Json:
    """What the DaemonSet's controller would make for node-1, if there were that node."""
    [daemon_set] = [one for one in manifests if one["kind"] == "DaemonSet"]
    template = daemon_set["spec"]["template"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template["metadata"], "name": "on-node-1", "namespace": NAMESPACE},
        "spec": {**template["spec"], "nodeName": "node-1"},
    }


def wait_for_account(api: Api, name: str) -> None:
    where = {"name": name, "namespace": NAMESPACE}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": where}
    eventually(lambda: api.get(account), f"the account {name}")


def accepts(api: Api, manifest: Json) -> bool:
    try:
        api.create(manifest, DRY)
    except RefusedError:
        return False
    return True


def rights(api: Api) -> set[str]:
    """What the API server says that this user may do to objects."""
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": NAMESPACE},
    }
    rules = api.ask("POST", path, review)["status"]["resourceRules"]
    return {f"{r} {verb}" for rule in rules for r in rule["resources"] for verb in rule["verbs"]}


def test_the_account_has_the_rights_of_its_role_and_no_others(users: Users) -> None:
    assert rights(users.driver) - rights(users.default) == {
        *(f"resourceslices {verb}" for verb in ("list", "watch", "create", "update", "delete")),
        *("resourceclaims get", "nodes get"),
    }
    claims = "/apis/resource.k8s.io/v1/resourceclaims"
    for path in ("/api/v1/secrets", PODS, "/api/v1/nodes", claims):
        with pytest.raises(RefusedError, match="403"):
            users.driver.list(path)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_nodes_driver_may_not_write_what_is_not_its_own(users: Users, version: str) -> None:
    users.driver.create(slice_of("node-1", version=version), DRY)
    everywhere = slice_of("node-1", version=version)
    del everywhere["spec"]["nodeName"]
    everywhere["spec"]["allNodes"] = True
    for refused, message in (
        (slice_of("node-2", version=version), "only write slices of node node-1"),
        (everywhere, "only write slices of node node-1"),
        (slice_of("node-1", pool="node-2", version=version), "in the pool node-1"),
        (slice_of("node-1", driver="other.example.com", version=version), "of gpu.nvidia.com"),
    ):
        with pytest.raises(RefusedError, match=message) as caught:
            users.driver.create(refused, DRY)
        assert caught.value.status in (403, 422)


def test_a_nodes_driver_may_not_change_another_nodes_slice(users: Users) -> None:
    other = users.admin.create(slice_of("node-2"))
    other["spec"]["pool"]["generation"] = 2
    with pytest.raises(RefusedError, match="only write slices of node node-1"):
        users.driver.ask("PUT", users.driver.path(other), other)
    with pytest.raises(RefusedError, match="only write slices of node node-1"):
        users.driver.delete(other)
    users.admin.delete(other)


def test_a_token_of_no_pod_may_not_write_slices(users: Users) -> None:
    with pytest.raises(RefusedError, match="the token names no node"):
        users.account.create(slice_of("node-1"), DRY)


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_bad_configuration_is_refused_and_a_good_one_is_not(
    users: Users, version: str, kind: str
) -> None:
    users.admin.create(claim("good", good_config(), version, kind), DRY)
    with pytest.raises(RefusedError, match=r"sharing\.strategy must be TimeSlicing or MPS"):
        users.admin.create(claim("bad", bad_config(), version, kind), DRY)


@pytest.mark.parametrize(("parameters", "message"), CASES)
def test_the_api_server_decides_each_case_as_the_driver_does(
    users: Users, parameters: Json, message: str
) -> None:
    if not message:
        users.admin.create(claim("case", parameters), DRY)
        return
    with pytest.raises(RefusedError) as caught:
        users.admin.create(claim("case", parameters), DRY)
    assert "nvml-dra-driver-configs" in caught.value.message
    assert message in caught.value.message


def test_only_configurations_of_the_driver_are_looked_at(users: Users) -> None:
    other = claim("other", {"anything": 1})
    other["spec"]["devices"]["config"][0]["opaque"]["driver"] = "other.example.com"
    for one in (other, claim("none"), claim("none", kind="ResourceClaimTemplate")):
        users.admin.create(one, DRY)
    both = claim("both", good_config())
    both["spec"]["devices"]["config"] += claim("bad", bad_config())["spec"]["devices"]["config"]
    with pytest.raises(RefusedError, match="must be TimeSlicing or MPS"):
        users.admin.create(both, DRY)


def test_a_claim_older_than_the_policy_can_be_changed_and_removed(users: Users) -> None:
    older = users.admin.get(claim("older"))
    assert older is not None
    older["metadata"]["finalizers"] = ["example.com/hold"]
    older = users.admin.ask("PUT", users.admin.path(older), older)
    users.admin.delete(older)
    held = users.admin.get(older)
    assert held is not None
    held["metadata"]["finalizers"] = []
    users.admin.ask("PUT", users.admin.path(held), held)
    assert users.admin.get(older) is None
