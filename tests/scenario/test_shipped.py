"""Every shipped scenario and profile keeps the rules that the model cannot express.

Each rule is a test over all scenarios; what it compares with nothing is the list of those that
break it.
"""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from conformance.cli.scenarios.listing import catalogue
from conformance.scenario.documents.yamlfile import read_documents, yaml_files
from conformance.scenario.driver.profile import DriverProfile, load_profile
from conformance.scenario.driver.variables import Variables
from conformance.scenario.lint.files import profile_problems
from conformance.scenario.lint.retired import manifest_problems
from conformance.scenario.loader import LoadedScenario
from reference_allocator.api.schema import CLUSTER_SCOPED
from tests.scenario.sampling import SAMPLE, sample
from tests.scenario.shipped import ROOT, shipped

PROFILES = [file.stem for file in yaml_files(ROOT / "drivers")]


def steps(loaded: LoadedScenario) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = loaded.document.data["spec"]["steps"]
    return found


def applied(loaded: LoadedScenario) -> Iterator[dict[str, Any]]:
    for step in steps(loaded):
        yield from step.get("apply", [])


def expected(loaded: LoadedScenario) -> Iterator[dict[str, Any]]:
    for step in steps(loaded):
        yield from step.get("expect", [])


def pod_specs(loaded: LoadedScenario) -> Iterator[dict[str, Any]]:
    for manifest in applied(loaded):
        if manifest["kind"] == "Pod":
            yield manifest["spec"]
        elif manifest["kind"] == "Job":
            yield manifest["spec"]["template"]["spec"]


@cache
def profile(name: str) -> DriverProfile:
    return load_profile(name, ROOT / "drivers")


SOME = pytest.mark.parametrize("among", [60, pytest.param(10_000, marks=pytest.mark.everything)])
"""A sample, another one each day; all in `make everything`."""


@SOME
def test_it_fits_the_schema(among: int) -> None:
    schema = json.loads((ROOT / "schemas/scenario.schema.json").read_text())
    validator = Draft202012Validator(schema)
    wrong = [
        (loaded.id, error.message)
        for loaded in sample(shipped(), among, "schema")
        for data in (loaded.document.data, read_documents(loaded.document.file)[0].data)
        for error in validator.iter_errors(data)
    ]
    assert wrong == [], SAMPLE


def test_every_profile_says_which_source_of_the_driver_it_was_written_against() -> None:
    unsaid = [name for name in PROFILES if not re.search(r" (at|of) ", profile(name).spec.source)]
    assert unsaid == []


def test_it_resolves_with_every_shipped_profile_that_has_what_it_requires() -> None:
    for loaded in shipped():
        spec = loaded.scenario.spec
        if spec.tier == "allocation":
            loaded.bind(Variables(None, "0badcafe", "image"))
            continue
        for one in map(profile, PROFILES):
            if (
                {*spec.requires.config} <= one.spec.config.keys()
                and {*spec.requires.attributes} <= one.spec.attributes.keys()
                and {*spec.requires.capacity} <= one.spec.capacity.keys()
            ):
                other = profile("other-nvml-dra-driver")
                loaded.bind(Variables(one, "0badcafe", "image", {"node": 3}, other=other))


def test_it_says_first_why_the_behaviour_matters() -> None:
    texts = {item.id: item.document.file.read_text(encoding="utf-8") for item in shipped()}
    assert [name for name, text in texts.items() if not text.startswith("# ")] == []


def test_it_is_short_or_says_why_not() -> None:
    texts = {item.id: item.document.file.read_text(encoding="utf-8") for item in shipped()}
    lengths = {name: len(text.splitlines()) for name, text in texts.items()}
    assert [n for n in texts if lengths[n] > 90 and "\n# Long, because " not in texts[n]] == []
    assert statistics.median(lengths.values()) <= 40


def test_its_lines_are_at_most_120_columns_but_for_a_word() -> None:
    long = [
        f"{item.document.file.name}: {line}"
        for item in shipped()
        for line in item.document.file.read_text(encoding="utf-8").splitlines()
        if len(line) > 120 and " " in line.strip().removeprefix("- ")
    ]
    assert long == []


def test_its_pods_are_put_on_a_node_in_one_way() -> None:
    texts = {item.id: item.document.file.read_text(encoding="utf-8") for item in shipped()}
    others = re.compile(r"nodeSelector: *\{?kubernetes\.io/hostname|matchFields: \[\{key: metadata")
    # A preference, the nodes that reach a device, and a claim's allocation.
    assert [name for name, text in texts.items() if others.search(text)] == [
        "core/cleanup-claim-used-again",
        "core/network-claim-goes-where-its-devices-are",
        "core/pod-waits-for-a-full-claim",
    ]


def test_its_folder_says_its_level() -> None:
    levels = {item.id: item.scenario.spec.level for item in shipped()}
    wrong = [name for name, level in levels.items() if name.split("/")[0] != level]
    assert [name for name in wrong if not name.startswith("regressions/")] == []


def test_its_first_reference_is_a_page_that_can_be_opened() -> None:
    first = {item.id: item.scenario.spec.references[0] for item in shipped()}
    assert [name for name, reference in first.items() if not reference.startswith("https://")] == []


def test_it_names_a_document_and_an_enhancement() -> None:
    def right(references: tuple[str, ...]) -> bool:
        enhancements = [item for item in references if item.startswith("https://kep.k8s.io/")]
        return len(enhancements) == 1 and any(
            "https://" in item for item in references if item not in enhancements
        )

    assert [i.id for i in shipped() if not right(i.scenario.spec.references)] == []


def test_core_needs_nothing_newer_than_the_stable_api() -> None:
    core = [item for item in shipped() if item.scenario.spec.level == "core"]
    needs = {item.id: item.scenario.spec.requires for item in core}
    assert core
    newer = [name for name, item in needs.items() if item.kubernetes != ">=1.34"]
    # 1.34 allocates from incomplete pools (docs/decisions/0008), and what is not run costs nothing;
    # controllers before 1.36 stop at a consumer that is no pod, which then nobody can clean up.
    assert newer == [
        "core/allocation-is-given-up-for-a-pod-elsewhere",
        "core/consumer-that-is-no-pod",
        "core/incomplete-pool-is-not-used",
    ]
    assert [name for name, item in needs.items() if item.feature_gates] == []
    # The beta versions are off by default, and a core scenario that is skipped certifies nothing.
    assert [name for name, item in needs.items() if item.apis] == []


def test_texts_that_are_no_api_are_asked_for_where_they_are_the_point() -> None:
    said = {
        (loaded.id, str(part["message"]))
        for loaded in shipped()
        for one in expected(loaded)
        for part in (one.get("pending"), one.get("rejected"), one.get("event"))
        if part and "message" in part
    }
    assert {name for name, _ in said if "messages/" in name} == {
        "extended/messages/events-say-why",
        "extended/messages/what-kubernetes-says",
    }
    # Strict decoding names the field in its text only.
    others = [(name, text) for name, text in said if "messages/" not in name]
    assert [one for one in others if not one[1].isalpha()] == []


def test_a_pod_that_finds_no_device_leaves_its_claim_unallocated() -> None:
    wrong = []
    for loaded in shipped():
        for step in steps(loaded):
            expectations = step.get("expect", [])
            waiting = [
                one["pod"]
                for one in expectations
                if "message" not in one.get("pending", {"message": ""})
            ]
            free = [
                one
                for one in expectations
                if one.get("allocated") is False
                or one.get("none", {}).get("kind") == "ResourceClaim"
            ]
            if len(free) < len(waiting):
                wrong.append(loaded.id)
    # Their claims are allocated already, for another pod, or are said to be unallocated before.
    assert wrong == [
        "core/allocation-bound-to-device-node",
        "core/allocation-is-given-up-for-a-pod-elsewhere",
        "core/drained-node-gives-device-back",
        "core/local-device-ties-network-device",
        "extended/device-binding-conditions/device-binds-to-its-node",
        "extended/device-binding-conditions/failure-concerns-one-of-two-pods",
        "extended/node-allocatable-resources/mapped-claim-is-not-shared",
    ]


def test_its_containers_run_the_given_image_and_a_probe() -> None:
    containers = [
        (item.id, container)
        for item in shipped()
        for spec in pod_specs(item)
        for container in spec["containers"]
    ]
    probes = ("${probe.hold}", "${probe.exit}", "${probe.open}")
    assert [name for name, one in containers if one["image"] != "${image}"] == []
    assert [name for name, one in containers if one["command"] not in probes] == []


def test_its_pods_end_quickly() -> None:
    graces = {
        (item.id, spec["terminationGracePeriodSeconds"], item.scenario.spec.tier == "allocation")
        for item in shipped()
        for spec in pod_specs(item)
    }
    # A pod of a node that is lost must be there long enough to be seen.
    graces.remove(("core/lost-node-keeps-device", 30, True))
    # While its hook sleeps, what it has must still be there.
    graces.remove(("extended/device-cleanup/cleanup-cdi-spec-removed", 30, False))
    # No kubelet ends a pod of a node that has none.
    graces.remove(("extended/device-cleanup/kubelet-restart-unprepares-gone-pod", 0, False))
    assert [one for one in graces if one[1] != (0 if one[2] else 1)] == []


def test_its_pods_run_on_any_node_that_has_their_devices_and_on_no_hollow_one_without() -> None:
    wrong = []
    for loaded in shipped():
        for spec in pod_specs(loaded):
            every = (*spec.get("initContainers", ()), *spec["containers"])
            limits = [item.get("resources", {}).get("limits") for item in every]
            bound_to_devices = spec.get("resourceClaims") or any(limits)
            everything = [{"operator": "Exists"}] if bound_to_devices else []
            synthetic = loaded.scenario.spec.tier == "allocation"
            if spec.get("tolerations", []) != (everything if synthetic else "${tolerations}"):
                wrong.append(loaded.id)
    # They show that nodes are left alone whose taints must not be tolerated; or a pod is bound to
    # such a node by hand, and stays there, without a claim.
    assert set(wrong) == {
        "core/drained-node-gives-device-back",
        "core/lost-node-keeps-device",
        "core/node-not-ready-gets-no-pod",
        "extended/device-cleanup/manager-restart-releases",
    }


def test_events_which_are_best_effort_are_waited_for_by_one_scenario_only() -> None:
    waiting = {loaded.id for loaded in shipped() for one in expected(loaded) if "event" in one}
    assert waiting == {"extended/messages/events-say-why"}


def test_what_it_changes_outside_its_namespace_it_names() -> None:
    for loaded in shipped():
        for step in steps(loaded):
            changed = step.get("patch", {"kind": "", "name": ""})
            if changed["kind"] in CLUSTER_SCOPED:
                own = ("${name.", "${class.", "${node.", "${namespace}")
                assert changed.get("name", "").startswith(own), loaded.id


def test_names_outside_its_namespace_belong_to_the_run() -> None:
    for loaded in shipped():
        for manifest in applied(loaded):
            if manifest["kind"] in CLUSTER_SCOPED:
                assert manifest["metadata"]["name"].startswith(("${name.", "${class.")), loaded.id
            namespace = manifest["metadata"].get("namespace", "${name.x}")
            assert namespace.startswith("${name."), loaded.id


def test_devices_that_it_uses_are_declared() -> None:
    for loaded in shipped():
        spec = loaded.scenario.spec
        uses = any(pod.get("resourceClaims") for pod in pod_specs(loaded))
        if spec.tier == "node" and uses:
            assert spec.requires.devices_in_all > 0, loaded.id
        if spec.tier == "allocation":
            assert spec.requires.devices_in_all == 0, loaded.id


def test_a_claim_that_containers_share_is_declared() -> None:
    """But for init containers, which have ended before the others begin."""
    for loaded in shipped():
        can = loaded.scenario.spec.requires.driver_can
        for pod in pod_specs(loaded):
            sidecars = [one for one in pod.get("initContainers", []) if "restartPolicy" in one]
            uses = Counter(
                name
                for one in (*pod["containers"], *sidecars)
                for name in {use["name"] for use in one.get("resources", {}).get("claims", [])}
            )
            if loaded.scenario.spec.tier != "allocation" and max(uses.values(), default=0) > 1:
                assert "claimOfSeveralContainers" in can, loaded.id


def test_what_the_api_server_must_refuse_is_found_without_a_cluster() -> None:
    refused = [
        (loaded.id, expectation["rejected"]["object"])
        for loaded in shipped()
        for expectation in expected(loaded)
        # Whether admin access is refused depends on a label of the namespace, and what accounts
        # may do on their rights.
        if "object" in expectation.get("rejected", ())
        and "as" not in expectation["rejected"]
        and loaded.scenario.spec.feature != "AdminAccess"
    ]
    assert refused
    unseen = {name for name, obj in refused if not list(manifest_problems(obj))}
    # Lint knows fields and types. Lengths, forms and uniqueness are left to the API server.
    assert unseen == {
        "core/claim-lists-have-limits",
        "core/claim-names-have-a-form",
        "core/class-is-checked",
        "core/configuration-is-checked",
        "core/expressions-are-checked",
        "core/pods-with-claims-are-checked",
        "core/published-names-have-a-form",
        "core/request-names-are-unique",
        "core/slices-are-checked",
        "core/template-is-checked",
        "core/unknown-values-refused",
        "extended/beta-api-versions/every-field-is-converted",
        "extended/consumable-capacity/policies-are-checked",
        "extended/derived-attributes/devices-aligned-by-a-derived-attribute",
        "extended/device-binding-conditions/conditions-are-checked",
        "extended/device-class/quota-limits-claims-and-devices",
        "extended/device-compatibility-groups/groups-are-checked",
        "extended/device-taint-rules/rule-replaced-and-refused",
        "extended/device-taints/tolerations-are-checked",
        "extended/extended-resource/ended-pod-loses-its-claim",
        "extended/extended-resource/quota-counts-claims-and-pods",
        "extended/list-type-attributes/lists-are-checked",
        "extended/node-allocatable-resources/resources-are-checked",
        "extended/optional-node-operations/only-on-nodes-that-declare-it",
        "extended/prioritized-list/alternatives-have-limits",
        "extended/resource-slice/slice-lists-have-limits",
    }


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_right_and_defines_what_the_scenarios_use(name: str) -> None:
    assert profile(name).metadata.name == name
    assert list(profile_problems(profile(name))) == []


def test_every_yaml_file_is_one_document() -> None:
    assert [file for file in yaml_files(ROOT) if len(read_documents(file)) != 1] == []


def test_the_catalogue_is_current() -> None:
    page = Path(__file__).resolve().parents[2] / "docs/scenarios.md"
    assert page.read_text() == catalogue(shipped()), (
        "run: dra-conformance list --markdown > docs/scenarios.md"
    )
