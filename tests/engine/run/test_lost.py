"""A driver that does not publish again after a fault is named by the scenario that lost it."""

from __future__ import annotations

import pytest

from conformance.engine.lost_driver import LostDriver
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome
from conformance.scenario.driver.profile import load_profile
from conformance.targets.opening.target import Opened
from conformance.targets.reference.target import ReferenceTarget
from kubesim.nodes.driver import SlicePublisher
from kubesim.nodes.kubelet import Kubelet
from tests.scenario.shipped import ROOT, shipped

RESTART = "extended/device-preparation/kubelet-restart-prepares-again"
NEEDS_THE_DRIVER = "core/generated-claim-containers-share-device"
NEEDS_NONE = "core/node-selector-slice-serves-matching-nodes"


def never_publishes_again(monkeypatch: pytest.MonkeyPatch, *, restart_helps: bool) -> None:
    """After its kubelet was restarted; as kubernetes#140063, where its own restart helps."""
    silent: set[str | None] = set()
    start, start_driver, sync = Kubelet.start, Kubelet.start_driver, SlicePublisher.sync

    def start_kubelet(kubelet: Kubelet) -> None:
        start(kubelet)
        silent.add(kubelet.node)

    def restart_driver(kubelet: Kubelet, *role: str) -> None:
        start_driver(kubelet, *role)
        if restart_helps:
            silent.discard(kubelet.node)

    def publish(publisher: SlicePublisher) -> None:
        known = publisher._published
        publisher._published = tuple(one for one in known if one[0] not in silent)
        sync(publisher)
        publisher._published = known

    monkeypatch.setattr(Kubelet, "start", start_kubelet)
    monkeypatch.setattr(Kubelet, "start_driver", restart_driver)
    monkeypatch.setattr(SlicePublisher, "sync", publish)


@pytest.mark.parametrize("restart_helps", [True, False], ids=["restart-helps", "stays-lost"])
def test_a_lost_driver_is_named_once_and_restarted_once(
    restart_helps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_publishes_again(monkeypatch, restart_helps=restart_helps)
    profile = load_profile("nvml-dra-driver", ROOT / "drivers")
    every = {item.id: item for item in shipped()}
    chosen = [every[name] for name in (RESTART, NEEDS_THE_DRIVER, NEEDS_NONE)]
    with ReferenceTarget() as target:
        setup = Setup("lost", Opened.of(target, profile, "image"), retries=1)
        lost, after, without = run_suite(chosen, setup, ()).finished
    assert lost.outcome is Outcome.FAILED
    said = f"driver {profile.driver} is lost: its ResourceSlices for reference-node-0 are not "
    assert said in lost.message
    assert "kubernetes#140063" in lost.message
    assert without.outcome is Outcome.PASSED
    if restart_helps:
        assert lost.message.endswith("restarted once, it has published again")
        assert after.outcome is Outcome.PASSED, after.message
    else:
        assert lost.message.endswith("restarted once, it stays lost")
        assert (after.outcome, after.steps) == (Outcome.ERROR, ())
        assert f"reference-node-0 since {RESTART}" in after.message


def test_a_driver_may_be_lost_on_a_node_while_another_scenario_asks_for_it() -> None:
    lost = LostDriver()
    lost.add(["node-1", "node-2"], "core/a")

    class Losing(tuple[str, ...]):
        """Nodes; whoever looks whether one is among them is interrupted by another scenario."""

        def __contains__(self, node: object) -> bool:
            lost.add([f"{node}-beside"], "core/b")
            return super().__contains__(node)

    loss = lost.explain("gpu.example.com", Losing(("node-2",)))
    assert loss == "driver gpu.example.com is lost: no ResourceSlices for node-2 since core/a"
