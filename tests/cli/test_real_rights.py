"""The roles in ci/rbac are enough: the suite runs on a real cluster with these rights alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from conformance.engine.objects.podspec import LABEL
from conformance.engine.schedule.needs import disrupted_roles
from conformance.results.events.scenario import Outcome
from conformance.results.read import load_results
from conformance.scenario.loader import LoadedScenario
from kube.nodes import RUN_LABEL
from tests import programs
from tests.cli.dra_objects import claim
from tests.cli.plain_client import Api, Json, RefusedError, eventually
from tests.cli.simulated_nodes import but_the_passed
from tests.localkube.pool import Shared
from tests.scenario.shipped import shipped

pytestmark = [pytest.mark.needs_root, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
User = tuple[Path, Api, str]
"""A kubeconfig of a service account, its client, and an image."""


@contextmanager
def user_with(cluster: Shared, folder: Path, account: str, *files: str) -> Iterator[User]:
    """A service account of the namespace `default` with the role in the first of these files."""
    admin = cluster.admin
    role, *others = (
        one
        for file in files
        for one in yaml.safe_load_all(
            (ROOT / "ci/rbac" / file).read_text().replace("YOU", f"{PREFIX}{account}")
        )
    )
    for one in (role, *others):
        admin.apply(one)
    meta = {"name": account}
    admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    admin.create(binding(account, role["metadata"]["name"]))
    token = admin.token("default", account)
    user = admin.as_user(token)
    # The authorizer learns of a binding a moment later.
    eventually(lambda: may_list(user, "/api/v1/namespaces"), "the binding is known")
    document = yaml.safe_load(cluster.access.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": token}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    yield path, user, cluster.access.image
    user.close()


PREFIX = "system:serviceaccount:default:"


@pytest.fixture(scope="module")
def suite_user(two_nodes: Shared, tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    """A user with the suite's role."""
    with user_with(two_nodes, tmp_path_factory.mktemp("user"), "suite", "suite.yaml") as user:
        yield user


@pytest.fixture(scope="module")
def confined_user(two_nodes: Shared, tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    """A user with the role for the node tier, confined to namespaces of the suite."""
    folder = tmp_path_factory.mktemp("confined")
    files = ("node-tier.yaml", "own-namespaces.yaml")
    with user_with(two_nodes, folder, "confined", *files) as user:
        eventually(lambda: refusal(user[1], claim("theirs")), "the policy is in force")
        yield user


def refusal(api: Api, manifest: Json) -> str:
    """Why an object cannot be created; empty if it can, and is deleted again."""
    try:
        api.create(manifest)
    except RefusedError as error:
        return error.message
    api.delete(manifest)
    return ""


def binding(account: str, role: str) -> Json:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": account},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
    }


def may_list(api: Api, path: str) -> bool:
    try:
        api.list(path)
    except RefusedError:
        return False
    return True


def asks_for(item: LoadedScenario) -> set[str]:
    """What a scenario has the suite do: each verb with each kind, and each kind of expectation."""
    found = set()
    for step in yaml.safe_load(item.document.file.read_text())["spec"]["steps"]:
        for verb, body in step.items():
            for one in body if isinstance(body, list) else [body]:
                said = one if isinstance(one, dict) else {}
                found |= {f"{verb} {key}" for key in said if verb == "expect"} | {verb}
                for named in (said, *(inner for inner in said.values() if isinstance(inner, dict))):
                    object_of = [
                        str(named.get(key)) for key in ("kind", "apiVersion", "subresource")
                    ]
                    found.add(" ".join((verb, *object_of)))
    return found


def one_of_each() -> list[LoadedScenario]:
    """Few scenarios that ask for all that any does, of those that need nothing beside the API."""
    asked = {
        item.id: asks_for(item)
        for item in shipped()
        if not item.scenario.spec.requires.abilities and not disrupted_roles(item.scenario.spec)
    }
    left = set().union(*asked.values())
    chosen = []
    while left:
        best = max(asked, key=lambda name: len(asked[name] & left))
        chosen.append(best)
        left -= asked[best]
    return [item for item in shipped() if item.id in chosen]


@pytest.mark.parametrize(
    "scenarios",
    [
        pytest.param(one_of_each, id="one of each"),
        pytest.param(shipped, id="all", marks=pytest.mark.everything),
    ],
)
def test_scenarios_pass_or_are_skipped_with_the_suites_rights(
    suite_user: User, tmp_path: Path, scenarios: Callable[[], Sequence[LoadedScenario]]
) -> None:
    pass_or_are_skipped(suite_user, tmp_path, scenarios())


def pass_or_are_skipped(user: User, folder: Path, scenarios: Sequence[LoadedScenario]) -> None:
    """Run scenarios as a user."""
    kubeconfig, _, image = user
    chosen = {item.id: str(item.document.file) for item in scenarios}
    context = yaml.safe_load(kubeconfig.read_text())["current-context"]
    command = [
        *(sys.executable, "-m", "conformance", "run", "--target", "cluster", "-n", "4"),
        *("--cluster", "kubeconfig", "--kubeconfig", str(kubeconfig), "--context", context),
        *("--image", image, "-o", str(folder / "out"), *chosen.values()),
    ]
    done = programs.ended(command, cwd=ROOT, timeout=1800)
    # Partial: nobody but the cluster's owner sees the CDI specs of its nodes.
    assert done.returncode in {0, 4}, but_the_passed(done)
    ended = load_results(folder / "out" / "results.ndjson").finished
    assert {item.scenario.id for item in ended} == chosen.keys()
    skipped = {item.scenario.id: item.message for item in ended if item.outcome is Outcome.SKIPPED}
    assert {item.outcome for item in ended} <= {Outcome.PASSED, Outcome.SKIPPED, Outcome.KNOWN}
    # A right that is missing is no reason to skip.
    reasons = ("API ", "feature gate", "not supported by this target", "needs ", "driver profile")
    assert [why for why in skipped.values() if not why.startswith(reasons)] == []
    assert [why for why in skipped.values() if "suite.yaml" in why] == []


@pytest.mark.everything
def test_scenarios_of_the_node_tier_run_confined_to_namespaces_of_the_suite(
    confined_user: User, tmp_path: Path
) -> None:
    _, user, image = confined_user
    chosen = [item for item in shipped() if item.scenario.spec.tier in ("node", "device")]
    pass_or_are_skipped(confined_user, tmp_path, chosen)
    container = {"name": "c", "image": image}
    pod: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    pod["spec"] = {"containers": [container]}
    assert "the namespace has no label dra-conformance.dev/run" in refusal(user, pod)
    for labels, why in (
        ({}, "an object without the label dra-conformance.dev/run"),
        ({RUN_LABEL: "x", LABEL[0]: "privileged"}, "must enforce the Pod Security Standard"),
    ):
        meta = {"name": "confined", "labels": labels}
        namespace: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
        assert why in refusal(user, namespace)


def test_what_a_killed_run_left_is_removed_with_the_suites_rights(
    suite_user: User, tmp_path: Path
) -> None:
    kubeconfig, user, _ = suite_user
    context = yaml.safe_load(kubeconfig.read_text())["current-context"]
    meta = {"name": "left", "labels": {RUN_LABEL: "killed"}}
    left: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
    user.create(left)
    command = [
        *(sys.executable, "-m", "conformance", "cleanup", "--cluster", "kubeconfig"),
        *("--kubeconfig", str(kubeconfig), "--context", context, "--run", "killed"),
    ]
    done = programs.ended(command, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 found, 0 left" in done.stdout
    assert user.get(left) is None


def test_the_suite_may_not_read_secrets_or_rights(suite_user: User) -> None:
    _, user, _ = suite_user
    refused = [
        "/api/v1/secrets",
        "/api/v1/configmaps",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/apps/v1/controllerrevisions",
    ]
    assert [path for path in refused if may_list(user, path)] == []


def test_the_pods_of_that_run_had_to_be_restricted(suite_user: User) -> None:
    """The API server enforces the label that namespaces of scenarios carry."""
    _, user, image = suite_user
    meta = {"name": "restricted", "labels": dict([LABEL])}
    user.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "restricted"},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }
    with pytest.raises(RefusedError, match="violates PodSecurity"):
        user.create(pod)
