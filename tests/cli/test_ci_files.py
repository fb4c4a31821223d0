"""ci/action, ci/examples and ci/job: what a pipeline is given exists, and does what it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
import yaml

from conformance.cli.app import app
from conformance.scenario.changes import KUBELET, AccountName, service_account
from conformance.targets.cluster.capture import RIGHTS
from conformance.targets.cluster.ownership import MADE_BY_SCENARIOS
from kube.kubeconfig import load_config
from kubesim.resources import KINDS
from localkube.gocommand import find_go
from tests.programs import ended
from tests.scenario.shipped import shipped

CI = Path(__file__).resolve().parents[2] / "ci"


def options_of_run() -> set[str]:
    group = typer.main.get_command(app)
    run = group.get_command(None, "run")  # type: ignore[attr-defined]
    return {option for parameter in run.params for option in parameter.opts}


def job_objects() -> list[dict[str, Any]]:
    files = sorted((CI / "job" / "base").glob("*.yaml"))
    return [one for file in files for one in yaml.safe_load_all(file.read_text())]


def of_kind(kind: str) -> dict[str, Any]:
    [found] = [item for item in job_objects() if item["kind"] == kind]
    return found


def test_the_job_gives_options_that_the_command_has() -> None:
    [container] = of_kind("Job")["spec"]["template"]["spec"]["containers"]
    command, *arguments = container["args"]
    assert command == "run"
    assert {item.partition("=")[0] for item in arguments} <= options_of_run()
    mounts = {item["mountPath"] for item in container["volumeMounts"]}
    assert {"/kubeconfig", "/results"} <= mounts


def test_the_jobs_kubeconfig_names_the_context_that_the_job_asks_for(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(of_kind("ConfigMap")["data"]["kubeconfig"])
    [container] = of_kind("Job")["spec"]["template"]["spec"]["containers"]
    [context] = [item.partition("=")[2] for item in container["args"] if "--context=" in item]
    assert load_config(path, context).cluster["server"] == "https://kubernetes.default.svc"


def test_the_job_has_the_role_that_the_suite_needs() -> None:
    role = yaml.safe_load((CI / "rbac" / "suite.yaml").read_text())
    binding = of_kind("ClusterRoleBinding")
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    account = of_kind("ServiceAccount")["metadata"]
    [subject] = binding["subjects"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])


def test_each_shard_is_run_by_one_pod() -> None:
    patch = yaml.safe_load((CI / "job" / "sharded" / "job.yaml").read_text())["spec"]
    [container] = patch["template"]["spec"]["containers"]
    shards = {item["name"]: item["value"] for item in container["env"]}["SHARDS"]
    assert patch["completions"] == patch["parallelism"] == int(shards)
    script = container["command"][2]
    asked = [
        subprocess.run(
            ["sh", "-c", script.replace("exec dra-conformance", "echo"), "suite", "run", "--x"],
            env={"JOB_COMPLETION_INDEX": str(index), "SHARDS": shards},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for index in range(patch["completions"])
    ]
    assert asked == [
        ["run", "--x", "--shard", f"{index + 1}/3", "--output", f"/results/{index}"]
        for index in range(3)
    ]
    assert {"--shard", "--output"} <= options_of_run()


def test_the_plugin_of_sonobuoy_leaves_what_it_waits_for(tmp_path: Path) -> None:
    plugin = yaml.safe_load((CI / "job" / "sonobuoy.yaml").read_text())
    script = plugin["spec"]["command"][2]
    assert set(re.findall(r"--[a-z-]+", script)) <= options_of_run()
    command = tmp_path / "dra-conformance"
    # The suite has ended with a verdict, and its reports are there.
    command.write_text(
        '#!/bin/sh\nmkdir "$HOME/reports"; touch "$HOME/reports/junit.xml"; exit 1\n'
    )
    command.chmod(0o755)
    results = tmp_path / "results"
    results.mkdir()
    subprocess.run(
        ["sh", "-c", script],
        env={
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "SONOBUOY_RESULTS_DIR": str(results),
            "DRIVER": "gpu.nvidia.com",
        },
        check=True,
    )
    with tarfile.open((results / "done").read_text()) as archive:
        assert "./junit.xml" in archive.getnames()
    cluster = load_config(tmp_path / "kubeconfig", "this").cluster
    assert cluster["server"] == "https://kubernetes.default.svc"


def scripts_of_the_action() -> list[str]:
    action = yaml.safe_load((CI / "action" / "action.yml").read_text())
    return [step["run"] for step in action["runs"]["steps"] if "run" in step]


def test_the_action_gives_options_that_the_command_has() -> None:
    given = {
        word for text in scripts_of_the_action() for word in re.findall(r"(?<=[( ])--[a-z-]+", text)
    }
    assert {"--target", "--cluster", "--compare", "--context", "--driver", "--output"} <= given
    assert given - {"--quiet"} <= options_of_run()


@pytest.mark.parametrize("script", scripts_of_the_action())
def test_no_input_of_the_action_becomes_part_of_a_script(script: str) -> None:
    assert "${{" not in script


def run_the_action(tmp_path: Path, command: str, **inputs: str) -> int:
    """Run the step that runs the suite, as a runner does; the command is what was installed."""
    [script] = [text for text in scripts_of_the_action() if " run " in text]
    action = yaml.safe_load((CI / "action" / "action.yml").read_text())
    [step] = [item for item in action["runs"]["steps"] if item.get("run") == script]
    environment = {
        name: inputs.get(value.split(".")[1].strip(" }"), "") for name, value in step["env"].items()
    }
    installed = tmp_path / "dra-conformance" / "bin" / "dra-conformance"
    installed.parent.mkdir(parents=True)
    installed.write_text(f"#!/bin/sh\n{command}\n")
    installed.chmod(0o755)
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=tmp_path,
        env={**os.environ, **environment, "RUNNER_TEMP": str(tmp_path)},
        check=False,
    ).returncode


def test_the_action_runs_on_the_reference_when_it_is_given_nothing(tmp_path: Path) -> None:
    command = f'exec {sys.executable} -m conformance "$@"'
    given = {"output": "out", "arguments": "-k two-requests-two-devices"}
    assert run_the_action(tmp_path, command, **given) == 0
    assert (tmp_path / "out" / "results.ndjson").is_file()


def test_the_action_passes_each_input_on_as_one_argument(tmp_path: Path) -> None:
    given = {
        "cluster": "kubeconfig",
        "context": "a b",
        "driver": "$(touch hostile)",
        "driver-manifests": "deploy",
        "driver-command": "driver --x",
        "output": "out",
        "arguments": "-n 2",
    }
    assert run_the_action(tmp_path, 'printf "%s\\n" "$@" >arguments', **given) == 0
    assert (tmp_path / "arguments").read_text().splitlines() == [
        *("run", "--output", "out", "--target", "cluster", "--cluster", "kubeconfig", "--compare"),
        *("--context", "a b", "--driver", "$(touch hostile)", "--driver-manifests", "deploy"),
        *("--driver-command", "driver --x", "-n", "2"),
    ]
    assert not (tmp_path / "hostile").exists()


def test_the_examples_give_options_that_the_command_has() -> None:
    for file in (CI / "examples").iterdir():
        command = file.read_text().partition("dra-conformance run")[2]
        given = set(re.findall(r"(?<=\s)--?[a-z-]+", command.partition("\n\n")[0]))
        assert {"--target", "--context", "--compare"} <= given, file
        assert {option for option in given if option.startswith("--")} <= options_of_run(), file


@pytest.mark.needs_go
@pytest.mark.parametrize("wrong", [False, True])
def test_actionlint_finds_nothing(wrong: bool, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    shutil.copytree(CI / "action", project / "ci" / "action")
    workflows = project / ".github" / "workflows"
    shutil.copytree(CI.parent / ".github" / "workflows", workflows)
    # It looks at a composite action where a workflow of the same project uses it.
    user = {
        "on": "push",
        "jobs": {
            "one": {
                "runs-on": "ubuntu-24.04",
                "steps": [
                    {"uses": "actions/checkout@v4"},
                    {"uses": "./ci/action", "with": {"conext" if wrong else "context": "kind-a"}},
                ],
            },
            "two": {
                "uses": "./.github/workflows/conformance.yaml",
                "with": {"driver": "gpu.nvidia.com"},
            },
        },
    }
    (workflows / "user.yaml").write_text(yaml.safe_dump(user))
    done = ended(
        [str(find_go()), "tool", "actionlint", *map(str, workflows.iterdir())],
        cwd=CI / "actionlint",
    )
    assert (done.returncode, "conext" in done.stdout) == (int(wrong), wrong), done


Right = tuple[str, str, str]
"""Group, resource and verb."""
NODE_TIERS = ("node", "device")


def used(*tiers: str) -> set[Right]:
    """What scenarios of these tiers ask for where the suite stops no components."""
    found: set[Right] = set()

    def use(kind: str, verb: str, subresource: str | None = None) -> None:
        if kind in KINDS:
            one = KINDS[kind]
            found.add((one.group, "/".join(filter(None, [one.plural, subresource])), verb))

    for loaded in shipped():
        spec = loaded.scenario.spec
        stops = any(name.startswith("fault:") for name in spec.requires.abilities)
        if spec.tier not in tiers or stops:
            continue
        for step in spec.steps:
            for manifest in step.apply or ():
                for verb in ("create", "get", "delete"):
                    use(manifest["kind"], verb)
            for deleted in step.delete or ():
                use(deleted.kind, "delete")
            if step.patch is not None:
                use(step.patch.kind, "patch", step.patch.subresource)
    return found


def rules_of(name: str) -> list[dict[str, Any]]:
    role = yaml.safe_load((CI / "rbac" / name).read_text())
    assert role["kind"] == "ClusterRole"
    return [*role["rules"]]


def rights_of(name: str) -> set[Right]:
    """What a role gives for objects, where its rule is for all names."""
    return {
        (group, resource, verb)
        for rule in rules_of(name)
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
        if "resourceNames" not in rule
    }


@pytest.mark.parametrize(
    ("role", "tiers"), [("suite.yaml", ("allocation", *NODE_TIERS)), ("node-tier.yaml", NODE_TIERS)]
)
def test_a_role_is_enough_for_every_step_of_its_scenarios(
    role: str, tiers: tuple[str, ...]
) -> None:
    given = rights_of(role)
    assert ("resource.k8s.io", "resourceclaims/status", "patch") in used(*tiers)
    assert used(*tiers) - given == set()
    # AuthorizedForDeviceStatus in pkg/registry/resource/utils.go, since Kubernetes 1.36.
    assert ("resource.k8s.io", "resourceclaims/driver", "arbitrary-node:patch") in given
    named = {kind for _, kind in MADE_BY_SCENARIOS if "Admission" not in kind}
    listed = {(KINDS[kind].group, KINDS[kind].plural, "list") for kind in named}
    assert listed - given == set(), "where it is looked for what a run has left"


def test_the_role_for_the_node_tier_has_nothing_that_reaches_beyond_it() -> None:
    """Each of these is why suite.yaml is for clusters for tests only."""
    narrow, whole = rights_of("node-tier.yaml"), rights_of("suite.yaml")
    assert narrow < whole
    assert not [rule for rule in rules_of("node-tier.yaml") if "resourceNames" in rule]
    reading = {"get", "list", "watch"}
    changing = {one for one in narrow if one[2] not in reading}
    assert {group for group, _, _ in changing} == {
        *("", "apps", "batch", "resource.k8s.io", "scheduling.k8s.io")
    }
    assert {resource for group, resource, _ in changing if not group} == {
        *("namespaces", "pods", "pods/status")
    }
    assert {verb for _, _, verb in narrow}.isdisjoint({"impersonate", "bind", "escalate", "*"})
    assert {"secrets", "serviceaccounts/token"}.isdisjoint(resource for _, resource, _ in whole)
    needs = [item.scenario.spec for item in shipped() if item.scenario.spec.tier in NODE_TIERS]
    assert len(needs) > 90
    assert [spec for spec in needs if spec.nodes or spec.accounts] == []


def test_the_suites_role_can_grant_what_accounts_may_do_and_impersonate_these_accounts_alone() -> (
    None
):
    """RBAC lets nobody grant what is not theirs; impersonation is limited by names."""
    rules = rules_of("suite.yaml")
    wanted = [
        rule
        for loaded in shipped()
        for account in loaded.scenario.spec.accounts.values()
        for rule in account.rules
    ]
    assert wanted
    for rule in wanted:
        for resource in rule.resources:
            assert any(
                {*rule.api_groups} <= {*one.get("apiGroups", ())}
                and resource in one.get("resources", ())
                and {*rule.verbs} <= {*one["verbs"]}
                and "resourceNames" not in one
                for one in rules
            ), (resource, rule.verbs)
    [accounts] = [
        rule
        for rule in rules
        if "serviceaccounts" in rule.get("resources", ()) and "impersonate" in rule["verbs"]
    ]
    # No kubelet's: who may speak for nodes may read every Secret that a pod uses.
    names = [name for name in get_args(AccountName) if name != KUBELET]
    assert accounts["resourceNames"] == [service_account(name) for name in names]


def test_the_deployed_audit_has_the_rights_that_it_needs_and_options_that_there_are(
    tmp_path: Path,
) -> None:
    folder = CI / "deploy" / "audit"
    named = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    objects = {
        one["kind"]: one
        for name in named
        for one in yaml.safe_load_all((folder / name).read_text())
    }
    needed = {
        (resource, verb)
        for rule in yaml.safe_load(RIGHTS)["rules"]
        for resource in rule.get("resources", rule.get("nonResourceURLs"))
        for verb in rule["verbs"]
        if resource not in {"resourceclaimtemplates", "devicetaintrules"}
    }
    given = {
        (resource, verb)
        for rule in objects["ClusterRole"]["rules"]
        for resource in rule.get("resources", rule.get("nonResourceURLs"))
        for verb in rule["verbs"]
    }
    assert given == needed
    [container] = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    command, *arguments = container["args"]
    audit = typer.main.get_command(app).get_command(None, command)  # type: ignore[attr-defined]
    options = {option for parameter in audit.params for option in parameter.opts}
    assert {item.partition("=")[0] for item in arguments} <= options
    path = tmp_path / "kubeconfig"
    path.write_text(objects["ConfigMap"]["data"]["kubeconfig"])
    assert load_config(path, "this").cluster["server"] == "https://kubernetes.default.svc"
