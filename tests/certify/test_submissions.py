"""A submission is written, checked, forged, and held against what somebody requires."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from conformance.certify.archive import ArchiveError
from conformance.certify.attestation import AttestationError, signed
from conformance.certify.policy import Policy
from conformance.certify.submission import ATTESTATION, EVIDENCE, check_bundle, submissions
from conformance.certify.values import Result
from conformance.certify.verify import Verification
from conformance.engine.events import PlannedScenario
from conformance.errors import ExitCode, UsageError
from tests.certify.evidence import PROFILES, REJECTED, SHARED, WAITS, Forgery, genuine
from tests.certify.submitted import WHO, Submitted, needs_ssh_keygen, new_key, public

Files = dict[str, bytes]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[PlannedScenario]]:
    path = tmp_path_factory.mktemp("genuine") / "results.ndjson"
    return path, genuine(path)


@pytest.fixture
def submitted(source: tuple[Path, list[PlannedScenario]], tmp_path: Path) -> Submitted:
    return Submitted(tmp_path, *source)


def test_a_submission_is_found_and_verified(submitted: Submitted) -> None:
    submitted.write()
    assert list(submissions(submitted.root)) == [submitted.folder]
    checked = submitted.check()
    assert checked.verification.discrepancies == ()
    assert checked.verification.departures == ()
    assert checked.signature is None
    assert submitted.folder.parent.name == "1.37"
    assert (submitted.folder / EVIDENCE).stat().st_size < 100_000


def test_the_same_run_gives_the_same_bytes(submitted: Submitted) -> None:
    submitted.write()
    before = {path.name: path.read_bytes() for path in submitted.folder.iterdir()}
    assert submitted.write() is False
    assert {path.name: path.read_bytes() for path in submitted.folder.iterdir()} == before


def test_another_run_is_not_overwritten_without_a_word(
    submitted: Submitted, source: tuple[Path, list[PlannedScenario]], tmp_path: Path
) -> None:
    submitted.write()
    forgery = Forgery(source[0], tmp_path, source[1])
    forgery.footer["seconds"] = 99.0
    forgery.write()
    with pytest.raises(UsageError, match="has a submission of another run; --replace overwrites"):
        submitted.write(results=forgery.results)
    assert submitted.write(results=forgery.results, replace=True) is True
    (submitted.folder / EVIDENCE).write_text("scrap")
    with pytest.raises(UsageError, match="has a submission of another run"):
        submitted.write()


def test_a_readme_says_that_nothing_is_certified_and_takes_no_markup(submitted: Submitted) -> None:
    submitted.write()
    text = (submitted.folder / "README.md").read_text()
    assert "**This certifies nothing:**" in text
    assert "`https://example.com/driver`" in text
    assert "uncertified | " in text


def edited_report(old: str, new: str) -> Callable[[Files], None]:
    def edit(files: Files) -> None:
        text = files["report.yaml"].decode()
        assert old in text
        files["report.yaml"] = text.replace(old, new, 1).encode()

    return edit


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("result: uncertified", "result: success", "$.profiles[0].result"),
        ("support: supported", "support: unsupported", "$.features[0].support"),
        ("stage: GA", "stage: Beta", "$.features[0].stage"),
        ("claimed: false", "claimed: true", "$.features[0].claimed"),
        ("product: Tesla T4", "product: H100", "$.inventory.devices[0].product"),
        ("count: 4", "count: 4000", "$.inventory.devices[0].count"),
        ("nodes: 1", "nodes: 100", "$.inventory.nodes"),
        ("knownIssues: []", "knownIssues: [{name: x, link: y, scenarios: []}]", "$.knownIssues[0]"),
        ("DRAAdminAccess: true", "DRAAdminAccess: false", "$.featureGates.DRAAdminAccess"),
        ("env: ^GPU_DEVICE", "env: ^GPU_DEVOCE", "$.driverProfile.document.spec.probe.env"),
        ("differences: 0", "differences: 1", "$.comparison.differences"),
        ("interrupted: false", "interrupted: true", "$.evidence.interrupted"),
    ],
)
def test_a_report_that_was_edited_in_its_bundle_is_told(
    submitted: Submitted, old: str, new: str, path: str
) -> None:
    submitted.write()
    submitted.change(edited_report(old, new))
    found = submitted.check().verification
    assert path in [item.path for item in found.discrepancies]
    assert found.exit_code is ExitCode.NOT_CONFORMANT


def without_a_scenario(files: Files) -> None:
    del files[f"scenarios/{WAITS}.json"]


def without_any_scenario(files: Files) -> None:
    for name in [name for name in files if name.startswith("scenarios/")]:
        del files[name]


def another_scenario(files: Files) -> None:
    name = f"scenarios/{SHARED}.json"
    document = json.loads(files[name])
    document["spec"]["steps"] = document["spec"]["steps"][:1]
    files[name] = json.dumps(document).encode()


def now_it_is_provisional(files: Files) -> None:
    name = f"scenarios/{SHARED}.json"
    files[name] = files[name].replace(b'"level"', b'"provisional": true, "level"', 1)


def a_laxer_profile(files: Files) -> None:
    files["profiles.yaml"] = files["profiles.yaml"].replace(b"skips: partial", b"skips: allowed")


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (without_a_scenario, "1 scenario in this suite and not in the bundle"),
        (without_any_scenario, "4 scenarios in this suite and not in the bundle"),
        (another_scenario, "1 scenario changed since"),
        (now_it_is_provisional, "1 scenario changed since"),
        (a_laxer_profile, "the profile dra-core is not the one of this suite"),
    ],
)
def test_a_bundle_with_other_scenarios_meets_no_requirement(
    submitted: Submitted, edit: Callable[[Files], None], said: str
) -> None:
    submitted.write()
    submitted.change(edit)
    found = submitted.check().verification
    assert any(text.startswith(said) for text in found.departures)
    unmet = [*Policy(success=True, suite="0.1.0").unmet(found)]
    assert any("--require success: its scenarios and profiles are not" in text for text in unmet)
    assert any("--require-suite 0.1.0: its scenarios are not" in text for text in unmet)


def test_an_older_suite_is_judged_by_its_own_scenarios(submitted: Submitted) -> None:
    """What the suite gained since is said, and is no discrepancy."""
    submitted.write()
    submitted.catalogue = [
        *(replace(item, digest="sha256:" + "0" * 64) for item in submitted.catalogue[:2]),
        *submitted.catalogue[2:],
        replace(submitted.catalogue[0], id="core/new"),
    ]
    found = submitted.check().verification
    assert found.discrepancies == ()
    assert [text.split(":")[0] for text in found.departures] == [
        "2 scenarios changed since",
        "1 scenario in this suite and not in the bundle",
    ]


def no_results(files: Files) -> None:
    del files["results.ndjson"]


def results_cut_off(files: Files) -> None:
    files["results.ndjson"] = files["results.ndjson"][:-9]


def a_scenario_that_is_none(files: Files) -> None:
    files[f"scenarios/{SHARED}.json"] = b"[]"


def a_scenario_with_a_key_twice(files: Files) -> None:
    files[f"scenarios/{SHARED}.json"] = b'{"a": 1, "a": 2}'


def deep(files: Files) -> None:
    files[f"scenarios/{SHARED}.json"] = b"[" * 100_000


def no_profiles(files: Files) -> None:
    files["profiles.yaml"] = b"!!python/object:os.system x"


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (no_results, "has no results.ndjson"),
        (a_scenario_that_is_none, f"scenarios/{SHARED}.json is no scenario"),
        (a_scenario_with_a_key_twice, "is no scenario .the key 'a' occurs twice"),
        (deep, "is no scenario"),
        (no_profiles, r"evidence\.tar\.xz/profiles\.yaml"),
    ],
)
def test_a_malformed_bundle_is_refused_with_its_place(
    submitted: Submitted, edit: Callable[[Files], None], said: str
) -> None:
    submitted.write()
    submitted.change(edit)
    with pytest.raises(UsageError, match=said):
        submitted.check()


def test_results_that_were_cut_off_are_a_discrepancy(submitted: Submitted) -> None:
    submitted.write()
    submitted.change(results_cut_off)
    [found] = submitted.check().verification.discrepancies
    assert "evidence.tar.xz/results.ndjson: has no footer" in found.message


def test_what_lies_about_in_the_folder_is_told(submitted: Submitted) -> None:
    submitted.write()
    (submitted.folder / "more.sh").write_text("")
    (submitted.folder / "README.md").unlink()
    (submitted.folder / "README.md").symlink_to("/etc/passwd")
    (submitted.folder / "report.yaml").write_text("kind: ConformanceReport\n")
    paths = {Path(item.path).name for item in submitted.check().verification.discrepancies}
    assert paths == {"more.sh", "README.md", "report.yaml"}


def test_a_submission_in_the_wrong_folder_is_told(submitted: Submitted) -> None:
    submitted.write()
    moved = submitted.root / "1.36" / submitted.folder.name
    moved.parent.mkdir()
    submitted.folder.rename(moved)
    submitted.folder = moved
    [found] = submitted.check().verification.discrepancies
    assert found.message == "it belongs in 1.37/example-driver"


def test_a_report_without_its_evidence_is_told(submitted: Submitted) -> None:
    submitted.write()
    (submitted.folder / EVIDENCE).unlink()
    with pytest.raises(UsageError, match="has a report without its evidence"):
        list(submissions(submitted.root))
    with pytest.raises(UsageError, match="has no submission"):
        list(submissions(submitted.root.parent / "nothing"))


@needs_ssh_keygen
def test_a_signature_names_who_signed(submitted: Submitted) -> None:
    submitted.write(sign=True)
    signature = submitted.check().signature
    assert signature is not None
    assert (signature.identity, signature.key[:7]) == (None, "SHA256:")
    known = submitted.check(submitted.signers).signature
    assert known is not None
    assert (known.identity, known.key) == (WHO, signature.key)
    envelope = json.loads((submitted.folder / ATTESTATION).read_text())
    said = json.loads(base64.b64decode(envelope["payload"]))
    assert said["_type"] == "https://in-toto.io/Statement/v1"
    assert said["predicate"]["result"] == "WARNED"
    assert [item["name"] for item in said["subject"]] == [EVIDENCE]


def envelope(change: Callable[[dict[str, object]], object]) -> Callable[[Submitted], None]:
    def edit(submitted: Submitted) -> None:
        path = submitted.folder / ATTESTATION
        document = json.loads(path.read_text())
        change(document)
        path.write_text(json.dumps(document))

    return edit


def of_another_bundle(submitted: Submitted) -> None:
    submitted.change(without_a_scenario)


def of_a_stranger(submitted: Submitted) -> None:
    path = submitted.folder / ATTESTATION
    said = json.loads(base64.b64decode(json.loads(path.read_text())["payload"]))
    path.write_text(signed(said, new_key(submitted.root / "stranger")))


def of_somebody_no_longer_allowed(submitted: Submitted) -> None:
    line = f'{WHO} valid-before="20200101" {public(submitted.key)}\n'
    submitted.signers.write_text(line)


def for_something_else(submitted: Submitted) -> None:
    line = f'{WHO} namespaces="git" {public(submitted.key)}\n'
    submitted.signers.write_text(line)


def said_more(document: dict[str, object]) -> None:
    said = json.loads(base64.b64decode(str(document["payload"])))
    said["predicate"]["result"] = "PASSED"
    document["payload"] = base64.b64encode(json.dumps(said).encode()).decode()


def spaced(document: dict[str, object]) -> None:
    said = json.loads(base64.b64decode(str(document["payload"])))
    document["payload"] = base64.b64encode(json.dumps(said, indent=3).encode()).decode()


@needs_ssh_keygen
@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (of_another_bundle, "is not about this submission"),
        (envelope(said_more), "is not about this submission"),
        (envelope(spaced), "ssh-keygen refuses it: .*incorrect signature"),
        (of_a_stranger, "ssh-keygen refuses it"),
        (of_somebody_no_longer_allowed, "ssh-keygen refuses it"),
        (for_something_else, "ssh-keygen refuses it"),
        (envelope(lambda it: it.update(signatures=[])), "is no DSSE envelope with one signature"),
        (envelope(lambda it: it.update(signatures=[{"sig": ""}] * 2)), "is no DSSE envelope"),
        (envelope(lambda it: it.update(signatures=[{"sig": "AAAA"}])), "ssh-keygen refuses it"),
        (envelope(lambda it: it.update(payload=7)), "is no DSSE envelope"),
        (envelope(lambda it: it.update(payloadType="text/plain")), r"\$\.payloadType: must be"),
    ],
)
def test_a_signature_that_is_not_good_is_refused(
    submitted: Submitted, edit: Callable[[Submitted], None], said: str
) -> None:
    submitted.write(sign=True)
    edit(submitted)
    with pytest.raises(AttestationError, match=said) as caught:
        submitted.check(submitted.signers)
    assert caught.value.exit_code is ExitCode.NOT_CONFORMANT


@needs_ssh_keygen
def test_a_key_that_cannot_sign_is_told(submitted: Submitted, tmp_path: Path) -> None:
    submitted.signers.touch()
    with pytest.raises(UsageError, match="ssh-keygen refuses it"):
        submitted.write(sign=True)


def verification(submitted: Submitted, **changes: object) -> Verification:
    submitted.write()
    found = check_bundle(submitted.folder / EVIDENCE, PROFILES, submitted.catalogue).verification
    return replace(found, report=found.report.model_copy(update=changes))


def test_what_is_required_is_met_or_said(submitted: Submitted) -> None:
    found = verification(submitted)
    everything = Policy(
        success=True, compare=True, hardware=True, suite="9.9", max_age=timedelta(1)
    )
    ended = datetime.fromisoformat(found.report.date)
    unmet = [*everything.unmet(found, ended + timedelta(days=3))]
    assert [text.split(":")[0] for text in unmet] == [
        "--require success",
        "--require-hardware",
        "--require-suite 9.9",
        "--max-age 1",
    ]
    assert [*Policy(max_age=timedelta(1)).unmet(found, ended - timedelta(days=2))] == [
        f"--max-age: the run ended on {found.report.date}, which is yet to come"
    ]
    profiles = tuple(
        item.model_copy(update={"result": Result.SUCCESS}) for item in found.report.profiles
    )
    real = {"target": "cluster/x", "simulated": (), "profiles": profiles, "date": "2026-01-01"}
    found = verification(submitted, **real)
    now = datetime(2026, 1, 2, tzinfo=UTC)
    assert [*replace(everything, suite="0.1.0", max_age=timedelta(9)).unmet(found, now)] == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"comparison": None}, "--require-compare: no allocation was judged"),
        ({"inventory": None}, "--require-hardware: no device of the driver was seen"),
        ({"date": "soon"}, "--max-age: 'soon' is no date"),
    ],
)
def test_what_is_missing_meets_no_requirement(
    submitted: Submitted, changes: dict[str, object], said: str
) -> None:
    found = verification(submitted, **{"target": "cluster/x", "simulated": (), **changes})
    policy = Policy(compare=True, hardware=True, max_age=timedelta(99))
    assert any(text.startswith(said) for text in policy.unmet(found, datetime.now(UTC)))


def test_made_up_devices_are_no_hardware(submitted: Submitted) -> None:
    found = verification(submitted, target="cluster/x", simulated=())
    used = found.report.driver_profile
    assert used is not None
    document = {**used.document, "spec": {"syntheticDevices": True}}
    report = found.report.model_copy(
        update={"driver_profile": used.model_copy(update={"document": document})}
    )
    assert [*Policy(hardware=True).unmet(replace(found, report=report))] == [
        "--require-hardware: the driver's devices are made up, as its profile says"
    ]


def test_the_archive_is_refused_before_anything_is_read_of_it(submitted: Submitted) -> None:
    submitted.write()
    (submitted.folder / EVIDENCE).write_bytes(b"PK\3\4" * 9)
    with pytest.raises(ArchiveError, match=r"evidence\.tar\.xz: is not compressed by xz"):
        submitted.check()
    assert yaml.safe_load((submitted.folder / "report.yaml").read_text())
    assert REJECTED in {item.id for item in submitted.catalogue}
