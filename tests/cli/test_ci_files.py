"""ci/action and ci/job: what a pipeline is given names options and objects that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from conformance.cli.app import app
from conformance.kubeapi.kubeconfig import load_config
from conformance.targets.reference.resources import KINDS
from tests.scenario.shipped import shipped

CI = Path(__file__).resolve().parents[2] / "ci"


def options_of_run() -> set[str]:
    group = typer.main.get_command(app)
    run = group.get_command(None, "run")  # type: ignore[attr-defined]
    return {option for parameter in run.params for option in parameter.opts}


def job_objects() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((CI / "job" / "job.yaml").read_text()))


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


def used() -> set[tuple[str, str, str]]:
    """Group, resource and verb of everything that the steps of all scenarios ask for."""
    found: set[tuple[str, str, str]] = set()

    def use(kind: str, verb: str, subresource: str | None = None) -> None:
        if kind in KINDS:
            one = KINDS[kind]
            found.add((one.group, "/".join(filter(None, [one.plural, subresource])), verb))

    for loaded in shipped():
        for step in loaded.scenario.spec.steps:
            for manifest in step.apply or ():
                for verb in ("create", "get", "delete"):
                    use(manifest["kind"], verb)
            for deleted in step.delete or ():
                use(deleted.kind, "delete")
            if step.patch is not None:
                use(step.patch.kind, "patch", step.patch.subresource)
    return found


def test_the_suites_role_is_enough_for_every_step_of_every_scenario() -> None:
    role = yaml.safe_load((CI / "rbac" / "suite.yaml").read_text())
    given = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
    }
    assert ("resource.k8s.io", "resourceclaims/status", "patch") in used()
    assert used() - given == set()
    # AuthorizedForDeviceStatus in pkg/registry/resource/utils.go, since Kubernetes 1.36.
    assert ("resource.k8s.io", "resourceclaims/driver", "arbitrary-node:patch") in given
