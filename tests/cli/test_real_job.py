"""ci/job/sharded on a real cluster: three pods that each run a shard, and one that merges them.

The manifests are what the real kustomize makes of them. There is no registry, no storage and no DNS
here: the containers run from this machine's files, the volume is a folder of the node, and the API
server is in the pods' /etc/hosts.
"""

from __future__ import annotations

import shutil
import sys
from itertools import chain
from pathlib import Path

import pytest
import yaml

from conformance.report.folder import RESULTS
from conformance.results.read import load_results
from kube.base.errors import ExitCode
from tests import programs
from tests.cli import deployment
from tests.cli.plain_client import Api, Json, eventually

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.needs_go,
    pytest.mark.slow,
    pytest.mark.everything,
]

SHARDED = deployment.ROOT / "ci" / "job" / "sharded"
PODS = "/api/v1/namespaces/dra-conformance/pods"
CHOSEN = (
    "two-requests-two-devices",
    "shared-claim-released-after-last-pod",
    "exact-count*",
    "late-*",
)


def for_this_machine(pod: Json, image: str, results: Path) -> None:
    """Change of a pod's spec what this machine has not."""
    deployment.for_a_client(pod, image, [])
    [volume] = [one for one in pod["volumes"] if one["name"] == "results"]
    del volume["persistentVolumeClaim"]
    volume["hostPath"] = {"path": str(results)}


def ended(admin: Api, name: str) -> dict[str, int]:
    """Pod -> exit code of the container of that name, once it has ended in all of them."""

    def look() -> dict[str, int]:
        found = {}
        for pod in admin.list(PODS):
            for status in pod["status"].get("containerStatuses", ()):
                if status["name"] == name:
                    terminated = status["state"].get("terminated")
                    if terminated is None:
                        return {}
                    found[pod["metadata"]["name"]] = terminated["exitCode"]
        return found

    def told() -> str:
        events = [one["message"] for one in admin.list(PODS.replace("pods", "events"))]
        return f"{name} ends: {[one['status'] for one in admin.list(PODS)]}; {events}"

    found: dict[str, int] = eventually(look, told, 600)
    return found


def scenarios_of(folder: Path) -> list[str]:
    """Ids of the scenarios in a result file."""
    return sorted(one.scenario.id for one in load_results(folder / RESULTS).finished)


def logs(admin: Api, pods: dict[str, int], container: str) -> str:
    return "\n".join(admin.text("GET", f"{PODS}/{pod}/log?container={container}") for pod in pods)


def test_three_pods_run_a_shard_each_and_a_fourth_merges_them(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    results.chmod(0o777)  # a volume's fsGroup does not reach a folder of the node
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    with deployment.for_clients("j") as (admin, image):
        for one in deployment.unrestricted(SHARDED):
            if one["kind"] == "Job":
                pod = one["spec"]["template"]["spec"]
                pod["containers"][0]["args"] += [
                    f"--image={image}",
                    *(f"-k{name}" for name in CHOSEN),
                ]
                for_this_machine(pod, image, results)
            if one["kind"] != "PersistentVolumeClaim":
                admin.create(one)
        shards = ended(admin, "suite")
        assert len(shards) == 3
        assert set(shards.values()) == {0}, logs(admin, shards, "suite")
        merge = yaml.safe_load((SHARDED / "merge.yaml").read_text())
        for_this_machine(merge["spec"], image, results)
        admin.create(merge)
        merged = ended(admin, "merge")
        assert merged == {"merge": 0}, logs(admin, merged, "merge")
    ran = [scenarios_of(results / str(index)) for index in range(3)]
    assert all(ran)
    assert scenarios_of(results / "merged") == sorted(chain(*ran))
    assert (results / "merged" / "report.html").is_file()
    # What a pod that was lost had to run is not forgotten.
    shutil.rmtree(results / "2")
    done = programs.ended(
        [sys.executable, "-m", "conformance", "merge", "0", "1", "-o", "lost"], cwd=results
    )
    assert done.returncode == ExitCode.INCONCLUSIVE
    assert f"{len(ran[2])} lost" in done.stdout
