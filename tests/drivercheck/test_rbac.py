"""A driver may ask what its vendor's roles allow, and what it asked is written down."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.cli.commands.driver_check import driver_check_command as driver_check
from conformance.drivercheck import driver
from conformance.drivercheck.bench import Bench
from conformance.drivercheck.driver import DriverUnderCheck
from conformance.drivercheck.objects import NODE, Objects
from conformance.drivercheck.rbac.policy import read_policy
from conformance.drivercheck.result import DriverCheckResult, Outcome, describe_access
from conformance.drivercheck.run import choose_checks, run
from kube.base.errors import UsageError
from kube.errors import ApiError
from kube.values import Ref, Request, User
from kubesim.apiserver.authorization import Attributes, PathAttributes
from kubesim.resources import KINDS
from tests.drivercheck.own_driver import OwnDriver

CLAIMS = {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["get"]}
NODES = {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get"]}
SLICES = {**CLAIMS, "resources": ["resourceslices"], "verbs": ["list", "watch", "create"]}


def rbac(kind: str, name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        **more,
    }


def binding(role: str, subject: dict[str, str], namespace: str = "") -> dict[str, Any]:
    kind, _, name = role.partition("/")
    more = {"roleRef": {"kind": kind, "name": name}, "subjects": [subject]}
    return rbac("RoleBinding" if namespace else "ClusterRoleBinding", "b", namespace, **more)


def account(name: str, namespace: str = "drivers") -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def daemon(name: str) -> dict[str, Any]:
    spec = {"template": {"spec": {"serviceAccountName": name}}}
    metadata = {"name": "d", "namespace": "drivers"}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}


def written(folder: Path, *documents: Any) -> Path:
    file = folder / "rbac.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    return file


A, B = rbac("ClusterRole", "a", rules=[CLAIMS]), rbac("ClusterRole", "b", rules=[NODES])
OWN = rbac("Role", "own", "drivers", rules=[CLAIMS])
IN_OWN = Attributes("get", KINDS["ResourceClaim"], "", "drivers", "c")
ELSEWHERE = Attributes("get", KINDS["ResourceClaim"], "", "other", "c")
A_NODE = Attributes("get", KINDS["Node"], "", "", "n")


@pytest.mark.parametrize(
    ("documents", "given", "user", "allowed"),
    [
        ([A, B], "", "default:driver", [IN_OWN, ELSEWHERE, A_NODE]),
        ([OWN], "", "default:driver", [IN_OWN]),
        ([{"kind": "List", "items": [A]}, None], "n/x", "n:x", [IN_OWN, ELSEWHERE]),
        (
            [A, B, binding("ClusterRole/b", account("x")), {"kind": "Service"}],
            "",
            "drivers:x",
            [A_NODE],
        ),
        ([A, binding("ClusterRole/a", account("x"), "drivers")], "", "drivers:x", [IN_OWN]),
        ([OWN, binding("Role/own", account("x"), "drivers")], "", "drivers:x", [IN_OWN]),
        (
            [
                *(A, binding("ClusterRole/a", account("x"))),
                *(B, binding("ClusterRole/b", account("y")), daemon("y")),
            ],
            "",
            "drivers:y",
            [A_NODE],
        ),
        (
            [
                *(A, B, binding("ClusterRole/a", account("x")), binding("Role/none", account("y"))),
                binding("ClusterRole/b", {"kind": "Group", "name": "system:serviceaccounts"}),
            ],
            "x",
            "drivers:x",
            [IN_OWN, ELSEWHERE, A_NODE],
        ),
        (
            [A, binding("ClusterRole/cluster-admin", account("x"))],
            "",
            "drivers:x",
            [IN_OWN, ELSEWHERE, A_NODE],
        ),
    ],
    ids=[
        *("cluster roles alone", "a role alone", "a list", "one account", "binding in a namespace"),
        *("role in a namespace", "account of the DaemonSet", "group", "cluster-admin"),
    ],
)
def test_the_file_says_what_the_account_may(
    documents: list[Any], given: str, user: str, allowed: list[Attributes], tmp_path: Path
) -> None:
    policy = read_policy(written(tmp_path, *documents), given, NODE)
    assert str(policy.user) == f"system:serviceaccount:{user}"
    assert [one for one in (IN_OWN, ELSEWHERE, A_NODE) if policy.allows(one)] == allowed


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([{"kind": "Service"}], "no ClusterRole or Role with rules is in it"),
        ([A, binding("ClusterRole/c", account("x"))], "yaml:[0-9]+: .*the ClusterRole 'c' is not"),
        (
            [A, *(binding("ClusterRole/a", account(name)) for name in "xy")],
            r"give .* \(found 0 that could be it\); bound are: drivers/x, drivers/y",
        ),
        (
            [rbac("ClusterRole", "a", rules=[{**CLAIMS, "resources": [1]}])],
            "must be a list of text",
        ),
        ([rbac("ClusterRole", "a", rules=["get"])], "must be a rule with verbs"),
        ([rbac("ClusterRole", "a", aggregationRule={"x": 1})], "rules that the cluster collected"),
        ([rbac("ClusterRole", "a", rules={"get": 1})], "must be a list of at most 1000 rules"),
        (
            [
                rbac(
                    "ClusterRole", "a", rules=[{key: ["x"] * 300 for key in ("verbs", "resources")}]
                )
            ],
            "lists more than 1000 rights",
        ),
    ],
)
def test_a_file_that_cannot_be_used_says_why(
    documents: list[Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        read_policy(written(tmp_path, *documents), "", NODE)


@pytest.mark.parametrize(
    ("rule", "verb", "subresource", "covered"),
    [
        ({**CLAIMS, "resources": ["*"]}, "get", "status", True),
        ({**CLAIMS, "resources": ["*/status"]}, "get", "status", True),
        ({**CLAIMS, "resources": ["*/status"]}, "get", "", False),
        (CLAIMS, "get", "status", False),
        ({**CLAIMS, "apiGroups": ["*"], "verbs": ["*"]}, "patch", "", True),
        ({**CLAIMS, "resourceNames": ["c"]}, "get", "", True),
        ({**CLAIMS, "resourceNames": ["d"]}, "get", "", False),
        ({"verbs": ["*"], "nonResourceURLs": ["*"]}, "get", "", False),
    ],
)
def test_rules_cover_what_they_name(
    rule: dict[str, Any], verb: str, subresource: str, covered: bool
) -> None:
    wanted = Attributes(verb, KINDS["ResourceClaim"], subresource, "n", "c")
    assert wanted.covered_by(rule) is covered


@pytest.mark.parametrize(
    ("paths", "covered"),
    [(["/metrics/*"], True), (["*"], True), (["/metrics"], False), ([], False)],
)
def test_rules_cover_paths(paths: list[str], covered: bool) -> None:
    rule = {"verbs": ["get"], "nonResourceURLs": paths}
    assert PathAttributes("get", "/metrics/slis").covered_by(rule) is covered


@pytest.mark.parametrize(
    ("path", "allowed"), [("/apis/resource.k8s.io", True), ("/version", True), ("/metrics", False)]
)
def test_everybody_may_ask_what_there_is(path: str, allowed: bool, tmp_path: Path) -> None:
    rights = Objects(read_policy(written(tmp_path, A), "", NODE)).rights
    assert rights.allows(User("default", "driver"), PathAttributes("get", path)) is allowed
    if not allowed:
        assert rights.refused[0].endswith(f'cannot get path "{path}"')


def checked(tmp_path: Path, *rules: dict[str, Any]) -> DriverCheckResult:
    policy = read_policy(written(tmp_path, rbac("ClusterRole", "a", rules=[*rules])), "", NODE)
    with tempfile.TemporaryDirectory(prefix="dra-", dir="/tmp") as folder:
        bench = Bench(DriverUnderCheck(Path(folder), OwnDriver(), policy=policy))
        try:
            return run(
                bench,
                choose_checks(["slices/deleted-slice-comes-back", "prepare/answers-*", "rbac"]),
            )
        finally:
            bench.driver.close()


def test_what_the_role_lacks_and_has_beyond_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = checked(tmp_path, CLAIMS, NODES, SLICES)
    assert result.verdict == "conformant", result.checks
    # On a busy machine the slice comes back before the driver watches.
    late = "ClusterRole a: resourceslices.resource.k8s.io: watch"
    assert {*result.unused_rights} - {late} == {"ClusterRole a: pods: get"}
    least = yaml.safe_load(result.least_cluster_role)
    assert least["metadata"]["name"] == "gpu.nvidia.com"
    verbs = [one for one in SLICES["verbs"] if one != "watch" or late not in result.unused_rights]
    slices = {**SLICES, "verbs": verbs}
    assert least["rules"] == [{**NODES, "resources": ["nodes"]}, CLAIMS, slices]
    assert "kind: ClusterRole" in list(describe_access(result))

    monkeypatch.setattr(driver, "START_SECONDS", 1.0)
    result = checked(tmp_path, CLAIMS, NODES, {**SLICES, "verbs": ["list", "watch"]})
    [refused] = [one for one in result.checks if one.name == "rbac/roles-allow-what-is-asked"]
    assert refused.outcome is Outcome.FAILED
    assert (
        'resourceslices.resource.k8s.io is forbidden: User "system:serviceaccount:default:driver"'
        ' cannot create resource "resourceslices" in API group "resource.k8s.io" at the cluster'
    ) in refused.message


def test_a_report_on_devices_needs_more_since_1_36(tmp_path: Path) -> None:
    status = {**CLAIMS, "resources": ["resourceclaims/status"], "verbs": ["patch"]}
    report = {
        **CLAIMS,
        "resources": ["resourceclaims/driver"],
        "verbs": ["associated-node:patch"],
        "resourceNames": ["d.example.com"],
    }
    file = written(tmp_path, rbac("ClusterRole", "a", rules=[status]))
    for policy in (None, read_policy(file, "", NODE)):
        objects = Objects(policy)
        objects.put_slice("d.example.com", NODE, "pool")
        claim = objects.create_claim("d.example.com")
        allocation = objects.find_allocation(claim)
        assert allocation is not None
        objects.allocate(claim, allocation)
        device = {"driver": "d.example.com", "pool": "pool", "device": "somebody-elses"}
        patch = Request(
            "patch",
            Ref.of(claim),
            {"status": {"devices": [device]}},
            "status",
            user=User("default", "driver", NODE),
        )
        if policy is None:
            objects.handler.handle(patch, "")
        else:
            with pytest.raises(ApiError, match="associated-node:patch"):
                objects.handler.handle(patch, "")
        text = objects.rights.least_role("d.example.com")
        assert yaml.safe_load(text)["rules"] == [status, report]
        assert text.index("# Kubernetes 1.36") > text.index("resourceclaims/status")
        assert bool(objects.rights.refused) is (policy is not None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"driver_command": "true", "service_account": "x"}, "--service-account is about the file"),
        ({"next_driver_command": "true"}, "--next-driver-command needs --driver-command"),
        (
            {"driver_command": "true", "next_driver_command": "no-such-program"},
            "--next-driver-command: the program 'no-such-program' does not exist",
        ),
        ({"driver_command": "true", "rbac": Path("none.yaml")}, "none.yaml: cannot be read"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        driver_check(**options)
