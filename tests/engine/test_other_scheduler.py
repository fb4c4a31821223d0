"""Scenarios with another scheduler: what their pods ask for, and what is not asked of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.certify.profiles import load_profiles
from conformance.engine.setup import Setup, planned
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome, ScenarioFinished
from conformance.scenario.scheduler import find_scheduler
from conformance.scenario.selection import select
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import Opened
from kube.base.errors import UsageError
from tests.engine.miniature import Miniature, pod, scenario

SEEN = {"expect": [{"pod": "p", "scheduled": True}]}
NOWHERE = Path("/nowhere")


def ran(target: Miniature, loaded: Any, scheduler: str) -> ScenarioFinished:
    options = TargetOptions(scheduler=scheduler)
    chosen = options.scheduler_profile()
    opened = Opened(target, target.capabilities(), None, "image", options, None, chosen)
    [finished] = run_suite([loaded], Setup("r", opened), ()).finished
    return finished


@pytest.mark.parametrize(("given", "asked"), [("", None), ("volcano", "volcano")])
def test_pods_ask_for_the_scheduler_that_the_run_is_for(given: str, asked: str | None) -> None:
    target = Miniature()
    made: list[Any] = []
    target.on_create = made.append
    assert ran(target, scenario({"apply": [pod("p")]}, SEEN), given).outcome is Outcome.PASSED
    [spec] = [obj["spec"] for obj in made if obj["kind"] == "Pod"]
    assert spec.get("schedulerName") == asked


def test_a_pod_that_names_its_scheduler_keeps_it() -> None:
    target = Miniature()
    made: list[Any] = []
    target.on_create = made.append
    own = pod("p")
    own["spec"]["schedulerName"] = "own"
    ran(target, scenario({"apply": [own]}, SEEN), "other")
    assert [obj["spec"]["schedulerName"] for obj in made if obj["kind"] == "Pod"] == ["own"]


@pytest.mark.parametrize(
    ("claims", "without", "feature", "reason"),
    [
        ([], {}, "ResourceClaim", None),
        ([], {}, "Messages", "Messages is kube-scheduler's own way"),
        (["Messages"], {}, "Messages", None),
        ([], {"ResourceClaim": "it is new"}, "ResourceClaim", "has no ResourceClaim: it is new"),
    ],
)
def test_what_it_lacks_is_skipped_with_the_reason(
    claims: list[str], without: dict[str, str], feature: str, reason: str | None, tmp_path: Path
) -> None:
    file = profile(tmp_path, claims=claims, without=without)
    asks = scenario({"apply": [pod("p")]}, SEEN, feature=feature)
    finished = ran(Miniature(), asks, str(file))
    assert finished.outcome is (Outcome.SKIPPED if reason else Outcome.PASSED)
    assert reason is None or reason in finished.message


def profile(folder: Path, **spec: Any) -> Path:
    file = folder / "mine.yaml"
    document = {
        "apiVersion": "dra-conformance/v1",
        "kind": "SchedulerProfile",
        "metadata": {"name": "mine"},
        "spec": {"schedulerName": "mine", **spec},
    }
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Not A Name", "is neither a scheduler profile's file nor a spec.schedulerName"),
        ("missing.yaml", "no such file"),
    ],
)
def test_what_is_no_scheduler_is_refused(name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        find_scheduler(name, NOWHERE)


def test_a_profile_names_features_that_exist(tmp_path: Path) -> None:
    file = profile(tmp_path, without={"Mesages": "why"})
    with pytest.raises(UsageError, match="no feature Mesages; did you mean Messages"):
        find_scheduler(str(file), NOWHERE)


def test_faults_and_metrics_of_kube_scheduler_say_nothing_of_another() -> None:
    class Local(Miniature):
        def capabilities(self) -> Any:
            able = frozenset({"fault:kube-scheduler", "metrics:kube-scheduler", "fault:etcd"})
            return replace(super().capabilities(), abilities=able)

    opened = Opened.of(Local(), None, "image", TargetOptions(scheduler="volcano"))
    assert opened.capabilities.abilities == {"fault:etcd", "another-scheduler"}
    assert "scheduler volcano" in opened.capabilities.lacking["fault:kube-scheduler"]


def test_the_core_of_a_scheduler_is_what_has_pods() -> None:
    [core] = load_profiles().select(["dra-core-scheduler"])
    found = {item.id for item in map(planned, select()) if core.includes(item)}
    assert "core/all-mode-takes-every-matching-device" in found
    assert "core/churn-keeps-invariants" in found
    assert "core/class-is-checked" not in found
    assert "core/cel-selector-picks-matching-device" not in found, "a driver's, with a kubelet"
