"""A suite that passes everything is worthless: each deliberate defect must fail its scenarios.

For each fault of the reference, the scenarios that are *about* the broken rule are listed. Others
may fail too.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.data import scenarios_dir
from conformance.engine.events import Outcome
from conformance.engine.scenario_run import Setup
from conformance.engine.suite import run_suite
from conformance.scenario.loader import LoadedScenario, default_paths, load_scenarios
from conformance.scenario.profile import load_profile
from conformance.scenario.registry import load_registry
from conformance.targets.reference.faults import Fault
from conformance.targets.reference.target import ReferenceOptions, ReferenceTarget

ABOUT: dict[Fault, set[str]] = {
    Fault.ACCEPT_INVALID_POD_CLAIM: {
        "core/pod-claim-with-both-sources-rejected",
        "core/pod-claim-without-source-rejected",
    },
    Fault.ALL_TAKES_ONE: {"core/all-mode-takes-every-matching-device"},
    Fault.DOUBLE_ALLOCATION: {
        "core/template-gives-each-pod-a-device",
        "core/cleanup-waiting-pod-gets-freed-device",
        "core/all-mode-waits-for-device-in-use",
    },
    Fault.FORGETS_RESERVATION: {"core/generated-claim-reserved-for-pod"},
    Fault.IGNORE_MATCH_ATTRIBUTE: {
        "core/match-attribute-picks-common-root",
        "core/match-attribute-separate-roots-stays-pending",
    },
    Fault.IGNORE_SELECTORS: {
        "core/cel-semver-picks-newer-device",
        "core/cel-semver-unreachable-stays-pending",
        "core/all-mode-takes-every-matching-device",
    },
    Fault.IGNORES_COUNT: {
        "core/exact-count-four-devices",
        "core/exact-count-above-inventory-stays-pending",
    },
    Fault.LEAK_CDI: {"core/cleanup-cdi-spec-removed"},
    Fault.LOSES_CONFIG: {
        "extended/opaque-configuration/claim-config-reaches-container",
        "extended/opaque-configuration/class-config-reaches-container",
    },
    Fault.NEVER_RELEASE: {"core/shared-claim-released-after-last-pod"},
    Fault.NO_FINALIZER: {"core/cleanup-claim-in-use-is-protected"},
    Fault.NO_OWNER_REFERENCE: {"core/generated-claim-belongs-to-pod"},
    Fault.NO_POD_CLAIM_ANNOTATION: {"core/generated-claim-belongs-to-pod"},
    Fault.OTHER_NAMESPACE: {"core/isolation-claim-of-other-namespace"},
    Fault.REQUEST_FILTER_IGNORED: {"core/container-sees-only-its-request"},
    Fault.SEES_ALL_CLAIMS: {
        "core/isolation-container-without-claim",
        "core/job-separate-and-shared-claims",
    },
    Fault.SHARES_TEMPLATE_CLAIM: {"core/template-gives-each-pod-a-device"},
    Fault.WRONG_DEVICE_IN_CONTAINER: {"core/generated-claim-containers-share-device"},
    Fault.WRONG_VERSION_CONVERSION: {"core/api-versions-claims-stored-alike"},
}


@pytest.fixture(scope="module")
def scenarios() -> list[LoadedScenario]:
    root = scenarios_dir()
    return load_scenarios(default_paths(root), root, load_registry(root / "features.yaml"))


@pytest.fixture
def outcomes(
    scenarios: list[LoadedScenario], request: pytest.FixtureRequest
) -> Iterator[dict[str, Outcome]]:
    faults: frozenset[Fault] = getattr(request, "param", frozenset())
    target = ReferenceTarget(ReferenceOptions(faults=faults))
    profile = load_profile("gpu.nvidia.com", scenarios_dir() / "drivers")
    try:
        setup = Setup("kill", target, target.capabilities(), profile, "image")
        result = run_suite(scenarios, setup, ())
        yield {item.scenario.id: item.outcome for item in result.finished}
    finally:
        target.close()


def test_the_reference_without_a_defect_passes_every_scenario(
    outcomes: dict[str, Outcome],
) -> None:
    assert {name: str(outcome) for name, outcome in outcomes.items() if outcome != "passed"} == {}


@pytest.mark.parametrize(
    ("outcomes", "about"),
    [pytest.param(frozenset({fault}), names, id=fault.title) for fault, names in ABOUT.items()],
    indirect=["outcomes"],
)
def test_a_defect_fails_the_scenarios_that_are_about_it(
    outcomes: dict[str, Outcome], about: set[str]
) -> None:
    assert {name for name in about if outcomes[name] is not Outcome.FAILED} == set()


def test_every_defect_has_a_scenario_about_it() -> None:
    assert set(ABOUT) == set(Fault)
