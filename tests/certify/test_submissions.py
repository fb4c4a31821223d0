"""A submission is written, checked, forged, signed, and held against what somebody requires."""

from __future__ import annotations

import lzma
import os
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from conformance.certify import evidence
from conformance.certify.evidence import SignatureError, read_evidence, write_evidence
from conformance.certify.model import DriverCheckSummary
from conformance.certify.profiles import CORE, load_profiles
from conformance.certify.submission import (
    EVIDENCE,
    SIGNATURE,
    check_evidence,
    check_folder,
    find_submissions,
)
from conformance.certify.values import ComparisonSummary, Result
from conformance.certify.verify import Verification
from conformance.cli.certifying import list_shipped_scenarios
from conformance.cli.commands.verify import verify_command
from conformance.results.read import ResultFileError, load_results
from kube.base.errors import ExitCode, UsageError
from tests.certify.evidence import PROFILES, WAITS, Forgery
from tests.certify.kept import KEPT
from tests.certify.submitted import SIGNER, Submitted, needs_ssh_keygen, new_key, public

Document = dict[str, Any]


def test_a_submission_is_found_and_verified(submitted: Submitted) -> None:
    assert submitted.write() is False
    assert list(find_submissions(submitted.root)) == [submitted.folder]
    checked = submitted.check()
    assert checked.verification.discrepancies == ()
    assert checked.verification.departures == ()
    assert checked.signature is None
    assert submitted.folder.parent.name == "1.37"
    assert submitted.evidence.stat().st_size < 100_000
    text = (submitted.folder / "README.md").read_text()
    assert "**This certifies nothing:**" in text
    assert "`https://example.com/driver`" in text
    assert "uncertified | " in text


@pytest.mark.parametrize("folder", list(find_submissions(KEPT)), ids=lambda path: path.name)
def test_a_kept_submission_says_what_its_evidence_says(folder: Path) -> None:
    checked = check_folder(folder, load_profiles(), list_shipped_scenarios)
    assert checked.verification.discrepancies == ()
    assert (folder / EVIDENCE).stat().st_size < 1 << 20
    report = checked.verification.report
    assert (report.hardware, report.uncertified) == ("simulated", ())
    results = {item.name: item.result for item in report.profiles}
    assert results["dra-core-cluster"] == "success"
    # Kubernetes' test driver prepares devices that another claim has.
    ours = report.implementation.organization == "dra-conformance"
    assert results["dra-core-driver"] == ("success" if ours else "failure")


def test_the_same_run_gives_the_same_bytes(submitted: Submitted) -> None:
    submitted.write()
    before = {path.name: path.read_bytes() for path in submitted.folder.iterdir()}
    assert submitted.write() is False
    assert {path.name: path.read_bytes() for path in submitted.folder.iterdir()} == before


def test_another_run_is_not_overwritten_unasked(submitted: Submitted, forgery: Forgery) -> None:
    submitted.write()
    forgery.footer["seconds"] += 1.0
    forgery.write()
    with pytest.raises(UsageError, match="has a submission of another run; --replace overwrites"):
        submitted.write(results=forgery.results)
    assert submitted.write(results=forgery.results, overwrite=True) is True
    submitted.evidence.write_text("scrap")
    with pytest.raises(UsageError, match="has a submission of another run"):
        submitted.write()


def other_digest(it: Document) -> None:
    it["catalogue"][0]["digest"] = "sha256:" + "0" * 64


def provisional(it: Document) -> None:
    it["catalogue"][0]["provisional"] = True


def laxer_profile(it: Document) -> None:
    it["profiles"]["profiles"][0]["skips"] = "allowed"


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda it: it["catalogue"].pop(), "1 scenario in this suite and not in the evidence"),
        (lambda it: it["catalogue"].clear(), "4 scenarios in this suite and not in the evidence"),
        (other_digest, "1 scenario changed since"),
        (provisional, "1 scenario changed since"),
        (laxer_profile, "the profile core is not the one of this suite"),
    ],
)
def test_evidence_with_other_scenarios_is_no_success(
    submitted: Submitted, edit: Callable[[Document], object], said: str
) -> None:
    submitted.write()
    submitted.change(edit)
    found = submitted.check().verification
    assert any(text.startswith(said) for text in found.departures)
    for unmet in (found.no_success(), found.no_hardware()):
        assert any("its scenarios and profiles are not" in text for text in unmet)


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
        "1 scenario in this suite and not in the evidence",
    ]


def of_the_device_tier(it: Document) -> None:
    it["catalogue"].insert(0, it["catalogue"][0] | {"tier": "device"})


def of_another_feature(it: Document) -> None:
    it["catalogue"].append(it["catalogue"][0] | {"feature": "DerivedAttributes"})


@pytest.mark.parametrize("edit", [of_the_device_tier, of_another_feature])
def test_a_scenario_that_is_in_the_catalogue_twice_certifies_nothing(
    submitted: Submitted, edit: Callable[[Document], object]
) -> None:
    submitted.write()
    submitted.change(edit)
    with pytest.raises(UsageError, match="that are in the catalogue twice: core/"):
        submitted.check()


def test_a_field_has_one_name(submitted: Submitted) -> None:
    """By its name in Python no other reader of the file would find it."""
    submitted.write()
    submitted.change(
        lambda it: it["report"].update(kubernetes_version=it["report"].pop("kubernetesVersion"))
    )
    with pytest.raises(UsageError, match="kubernetesVersion: Field required"):
        submitted.check()


def test_a_field_of_the_result_file_has_one_name(forgery: Forgery) -> None:
    forgery.header["kubernetes_version"] = forgery.header.pop("kubernetesVersion")
    forgery.write()
    with pytest.raises(ResultFileError, match=r"\$\.kubernetesVersion: Field required"):
        load_results(forgery.results)


def packed(text: str) -> bytes:
    return lzma.compress(text.encode(), preset=0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"PK\3\4" * 9, "Input format not supported", id="no xz"),
        pytest.param(b"", "was cut off", id="empty"),
        pytest.param(packed("{}")[:-9], "was cut off", id="cut off"),
        pytest.param(packed("{}") + b"more", "has more after its end", id="more"),
        pytest.param(packed(" " * 30_001), "holds more than", id="bomb"),
        pytest.param(packed("{}"), r"\$\.report: Field required", id="no document"),
        pytest.param(packed('{"a": 1, "a": 2}'), "the key 'a' occurs twice", id="key twice"),
        pytest.param(packed("[" * 20_000), "it is nested deeper than 128", id="deep"),
    ],
)
def test_what_is_no_evidence_file_is_refused(
    content: bytes, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "MAX_BYTES", 30_000)
    (tmp_path / EVIDENCE).write_bytes(content)
    with pytest.raises(UsageError, match=rf"evidence\.json\.xz: is not an evidence file .*{said}"):
        read_evidence(tmp_path / EVIDENCE)


def test_a_text_that_is_no_unicode_is_refused(submitted: Submitted) -> None:
    submitted.write()
    submitted.change(lambda it: it.update(results="\ud800"))
    with pytest.raises(UsageError, match=r"is not an evidence file .*surrogates not allowed"):
        submitted.check()


def test_evidence_that_is_refused_is_refused_before_scenarios_are_read(tmp_path: Path) -> None:
    path = tmp_path / EVIDENCE
    path.write_bytes(lzma.compress(b"[]"))
    with pytest.raises(UsageError, match="is not an evidence file"):
        check_evidence(path, PROFILES, lambda: pytest.fail("scenarios were read"))


def test_what_needs_much_memory_to_unpack_is_refused(
    submitted: Submitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted.write()
    monkeypatch.setattr(evidence, "MAX_MEMORY", 8 << 20)
    with pytest.raises(UsageError, match="Memory usage limit"):
        submitted.check()


@pytest.mark.parametrize("what", ["missing", "folder", "pipe"])
def test_evidence_that_cannot_be_read_is_reported(tmp_path: Path, what: str) -> None:
    path = tmp_path / EVIDENCE
    if what == "folder":
        path.mkdir()
    if what == "pipe":
        os.mkfifo(path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_evidence(path)


@pytest.mark.parametrize("limit", ["MAX_BYTES", "MAX_PACKED"])
def test_what_would_be_refused_for_its_size_is_not_written(
    submitted: Submitted, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    submitted.write()
    report = read_evidence(submitted.evidence).report
    monkeypatch.setattr(evidence, limit, 5_000)
    path = submitted.root / "x"
    with pytest.raises(UsageError, match="more than `verify` reads"):
        write_evidence(path, report, load_results(submitted.results), PROFILES, submitted.catalogue)
    assert not path.exists()


def test_results_that_were_cut_off_are_a_discrepancy(submitted: Submitted) -> None:
    submitted.write()
    submitted.change(lambda it: it.update(results=it["results"][:-9]))
    [found] = submitted.check().verification.discrepancies
    assert found.code == "result-file"
    assert "evidence.json.xz/results.ndjson: has no footer" in found.message


def test_a_report_that_was_edited_in_its_evidence_is_noticed(submitted: Submitted) -> None:
    submitted.write()
    submitted.change(lambda it: it["report"]["profiles"][0].update(result="success"))
    found = submitted.check().verification
    assert {(Path(item.path).name, item.code) for item in found.discrepancies} == {
        ("$.profiles[0].result", "report"),
        ("report.yaml", "report-file"),
        ("README.md", "readme"),
    }
    assert found.exit_code is ExitCode.NOT_CONFORMANT


def test_stray_files_in_the_folder_are_reported(submitted: Submitted) -> None:
    submitted.write()
    (submitted.folder / "more.sh").write_text("")
    (submitted.folder / "README.md").unlink()
    (submitted.folder / "README.md").symlink_to("/etc/passwd")
    (submitted.folder / "report.yaml").write_text("kind: ConformanceReport\n")
    found = submitted.check().verification.discrepancies
    assert {(Path(item.path).name, item.code) for item in found} == {
        ("more.sh", "stray-file"),
        ("README.md", "stray-file"),
        ("README.md", "readme"),
        ("report.yaml", "report-file"),
    }


README = """# `driver` `1.2.3` of `Example`"""


def edit_readme(old: str, new: str) -> Callable[[Path], object]:
    """What exchanges a text that is in the file once."""

    def edit(readme: Path) -> None:
        text = readme.read_text()
        assert text.count(old) == 1, old
        readme.write_text(text.replace(old, new))

    return edit


def make_folder(readme: Path) -> None:
    readme.unlink()
    readme.mkdir()


def make_link(readme: Path) -> None:
    moved = readme.parents[2] / "moved.md"
    readme.rename(moved)
    readme.symlink_to(moved)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        pytest.param(
            edit_readme("| hardware | simulated |", "| hardware | shown |"),
            r'has "\| hardware \| shown .*", the evidence gives "\| hardware \| simulated ',
            id="hardware",
        ),
        pytest.param(
            edit_readme("| uncertified | 4 |", "| success | 400 |"), r"line \d+ has", id="row"
        ),
        pytest.param(
            edit_readme("**This certifies nothing:**\n", ""), r"line \d+ has", id="line left out"
        ),
        pytest.param(
            edit_readme("\n```\n\nThe run's", "\n```\n\nHardware was shown.\n\nThe run's"),
            'line .* has "Hardware was shown."',
            id="line after the commands",
        ),
        pytest.param(
            lambda it: it.write_bytes(it.read_bytes() + b"\nMore."),
            r'has line \d+, "More\."; the evidence gives none',
            id="line more",
        ),
        pytest.param(
            lambda it: it.write_bytes(it.read_bytes()[:-9] + b"`"),
            r'line \d+ has ".+`", the evidence gives ".+}`"',
            id="long line",
        ),
        pytest.param(
            lambda it: it.write_text(README), "ends before line 2, the evidence gives", id="cut off"
        ),
        pytest.param(lambda it: it.write_bytes(b"#\xff"), r"is not UTF-8 \(byte 1\)", id="bytes"),
        pytest.param(
            lambda it: it.write_bytes(b" " * ((1 << 20) + 1)),
            "cannot be read: it is larger than 1 MiB",
            id="size",
        ),
        pytest.param(Path.unlink, "is missing; `dra-conformance submit` writes it", id="missing"),
        pytest.param(make_folder, "cannot be read: it is not a regular file", id="folder"),
        pytest.param(make_link, "is a link, and must be the file itself", id="link"),
    ],
)
@pytest.mark.parametrize("kept", [True, False], ids=["commands kept", "commands not kept"])
def test_a_readme_that_says_other_than_its_evidence_is_refused(
    submitted: Submitted, edit: Callable[[Path], object], said: str, kept: bool
) -> None:
    submitted.write(reproduce="make conformance")
    if not kept:  # as evidence was written at first
        submitted.change(lambda it: it.pop("reproduce"))
    assert submitted.check().verification.discrepancies == ()
    edit(submitted.folder / "README.md")
    found = submitted.check().verification.discrepancies
    [message] = [item.message for item in found if item.code == "readme"]
    assert re.search(said, message)
    assert {item.code for item in found} <= {"readme", "stray-file"}


def test_other_commands_are_refused_where_the_evidence_has_them(submitted: Submitted) -> None:
    submitted.write(reproduce="make conformance")
    edit_readme("make conformance", "rm -r /")(submitted.folder / "README.md")
    [found] = submitted.check().verification.discrepancies
    assert 'has "rm -r /", the evidence gives "make conformance"' in found.message
    submitted.change(lambda it: it.pop("reproduce"))
    assert submitted.check().verification.discrepancies == ()


def test_the_commands_of_a_submitter_stay_one_block_of_code(submitted: Submitted) -> None:
    submitted.write(reproduce="true\n```\n\n| hardware | shown |\n\n```\nfalse")
    assert submitted.check().verification.discrepancies == ()
    text = (submitted.folder / "README.md").read_text()
    assert "```\ntrue\n'''\n\n| hardware | shown |\n\n'''\nfalse\n```\n" in text


def test_commands_that_are_no_unicode_or_hold_a_credential_are_kept_as_they_are_shown(
    submitted: Submitted,
) -> None:
    submitted.write(reproduce="run \udcff --token=abcdefgh12345678")
    assert submitted.check().verification.discrepancies == ()
    kept = read_evidence(submitted.evidence).reproduce
    assert kept == "run ? --token=<redacted>"
    assert f"```\n{kept}\n```\n" in (submitted.folder / "README.md").read_text()


def test_the_readme_of_another_version_is_not_compared_and_that_is_said(
    submitted: Submitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted.write()
    edit_readme("| hardware | simulated |", "| hardware | not told |")(
        submitted.folder / "README.md"
    )
    ours = submitted.check().verification
    assert [item.code for item in ours.discrepancies] == ["readme"]
    for module in ("readme", "verify"):
        monkeypatch.setattr(f"conformance.certify.{module}.__version__", "9.9.9")
    found = submitted.check().verification
    assert found.discrepancies == ()
    version = found.report.suite.version
    assert f"README.md was not compared: suite {version} wrote it" in found.notes
    assert f"it is of suite {version}, and judged here by 9.9.9" in found.departures


def test_a_submission_in_the_wrong_folder_is_reported(submitted: Submitted) -> None:
    submitted.write()
    moved = submitted.root / "1.36" / submitted.folder.name
    moved.parent.mkdir()
    submitted.folder.rename(moved)
    submitted.folder = moved
    [found] = submitted.check().verification.discrepancies
    assert (found.code, found.message) == ("folder", "it belongs in 1.37/example-driver")


def test_a_report_without_its_evidence_is_reported(submitted: Submitted) -> None:
    submitted.write()
    submitted.evidence.unlink()
    with pytest.raises(UsageError, match="has a report without its evidence"):
        list(find_submissions(submitted.root))
    nothing = submitted.root.parent / "nothing"
    with pytest.raises(UsageError, match="nothing: is not a folder"):
        list(find_submissions(nothing))
    nothing.mkdir()
    with pytest.raises(UsageError, match="has no submission"):
        list(find_submissions(nothing))


def test_a_file_of_signers_that_is_not_there_is_said_also_without_a_signature(
    submitted: Submitted,
) -> None:
    submitted.write()
    with pytest.raises(UsageError, match="nobody: is not an allowed signers file"):
        submitted.check(submitted.root / "nobody")


@needs_ssh_keygen
def test_a_signature_names_the_signer(submitted: Submitted) -> None:
    submitted.write(sign=True)
    signature = submitted.check().signature
    assert signature is not None
    assert (signature.identity, signature.key[:7]) == (None, "SHA256:")
    known = submitted.check(submitted.signers).signature
    assert known is not None
    assert (known.identity, known.key) == (SIGNER, signature.key)
    submitted.write()
    assert submitted.check().signature is None


def of_other_evidence(submitted: Submitted) -> None:
    submitted.change(lambda it: it["catalogue"].pop())


def of_the_same_document_in_other_bytes(submitted: Submitted) -> None:
    submitted.change(lambda _: None)


def of_an_unknown_signer(submitted: Submitted) -> None:
    submitted.key = new_key(submitted.root / "other")
    submitted.write(sign=True)


def of_a_signer_no_longer_allowed(submitted: Submitted) -> None:
    line = f'{SIGNER} valid-before="20200101" {public(submitted.key)}\n'
    submitted.signers.write_text(line)


def for_something_else(submitted: Submitted) -> None:
    submitted.signers.write_text(f'{SIGNER} namespaces="git" {public(submitted.key)}\n')


def no_signature(submitted: Submitted) -> None:
    (submitted.folder / SIGNATURE).write_text("AAAA")


@needs_ssh_keygen
@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (of_other_evidence, "incorrect signature"),
        (of_the_same_document_in_other_bytes, "incorrect signature"),
        (of_an_unknown_signer, ""),
        (of_a_signer_no_longer_allowed, ""),
        (for_something_else, ""),
        (no_signature, ""),
    ],
)
def test_a_signature_that_is_not_good_is_refused(
    submitted: Submitted, edit: Callable[[Submitted], None], said: str
) -> None:
    submitted.write(sign=True)
    edit(submitted)
    with pytest.raises(SignatureError, match=f"ssh-keygen refuses it: .*{said}") as caught:
        submitted.check(submitted.signers)
    assert caught.value.exit_code is ExitCode.NOT_CONFORMANT


@needs_ssh_keygen
def test_a_key_that_cannot_sign_is_reported(submitted: Submitted) -> None:
    submitted.signers.touch()
    with pytest.raises(UsageError, match="ssh-keygen refuses it"):
        submitted.write(sign=True)


def verification(submitted: Submitted, **changes: object) -> Verification:
    submitted.write()
    found = submitted.check().verification
    return replace(found, report=found.report.model_copy(update=changes))


@pytest.mark.parametrize(
    ("changes", "compared", "hardware"),
    [
        ({}, [], []),
        ({"comparison": None}, ["no allocation was judged"], []),
        (
            {
                "comparison": ComparisonSummary(
                    verdicts={"identical": 0}, differences=0, not_conformant=(), not_judged=()
                )
            },
            ["no allocation was judged"],
            [],
        ),
        (
            {"hardware": "not shown"},
            [],
            ["not shown: no scenario of the tier `device` passed, or one did not"],
        ),
        ({"hardware": "simulated", "simulated": ("NVML",)}, [], ["simulated: NVML"]),
        ({"hardware": "simulated"}, [], ["simulated: the devices, as the driver profile says"]),
    ],
)
def test_a_comparison_and_hardware_can_be_required(
    submitted: Submitted, changes: dict[str, object], compared: list[str], hardware: list[str]
) -> None:
    shown = {"target": "cluster/x", "simulated": (), "hardware": "shown"}
    found = verification(submitted, **{**shown, **changes})
    assert [*found.not_compared()] == compared
    assert [*found.no_hardware()] == hardware


def test_a_suite_can_be_required(submitted: Submitted) -> None:
    found = verification(submitted)
    ours = found.report.suite.version
    assert [*found.other_suite(ours)] == []
    assert [*found.other_suite("9.9")] == [f"the run was of {ours}"]
    assert [*replace(found, departures=("x",)).other_suite(ours)] == [
        "its scenarios are not those of that version"
    ]


def test_a_success_needs_each_profile_and_devices(submitted: Submitted) -> None:
    found = verification(submitted)
    assert list(found.no_success()) == ["core is uncertified"]
    profiles = tuple(
        item.model_copy(update={"result": Result.SUCCESS}) for item in found.report.profiles
    )
    assert list(verification(submitted, profiles=profiles).no_success()) == []
    unseen = verification(submitted, profiles=profiles, inventory=None)
    assert list(unseen.no_success()) == ["no device of the driver was seen in a snapshot"]


CLUSTER, DRIVER = CORE
GUIDE = "dra-allocate-devices-guide"
"""A profile of some scenarios of the core."""


@pytest.mark.parametrize(
    ("names", "lacking"),
    [
        ([GUIDE], [CLUSTER, DRIVER]),
        ([GUIDE, DRIVER], [CLUSTER]),
        ([GUIDE, CLUSTER, DRIVER], []),
        ([CLUSTER], []),
        ([DRIVER], []),
        (["dra-core-scheduler"], []),
    ],
    ids=lambda names: "+".join(names) or "none",
)
def test_a_success_needs_the_core_that_its_profiles_stand_on(
    submitted: Submitted, names: list[str], lacking: list[str]
) -> None:
    submitted.profiles = names
    found = verification(submitted)
    assert found.discrepancies == ()
    text = f"is not in the report, and {GUIDE} cannot do without"
    assert [why for why in found.no_success() if "is not in" in why] == [
        f"{name} {text}" for name in lacking
    ]


def test_the_success_of_one_profile_can_be_required(submitted: Submitted) -> None:
    submitted.profiles = [GUIDE, CLUSTER]
    found = verification(submitted)
    states = {GUIDE: Result.SUCCESS, CLUSTER: Result.PARTIAL}
    results = tuple(
        item.model_copy(update={"result": states[item.name]}) for item in found.report.profiles
    )
    found = verification(submitted, profiles=results)
    assert list(found.no_success_of(GUIDE)) == []
    assert list(found.no_success_of(CLUSTER)) == ["it is partial"]
    assert list(found.no_success_of(DRIVER)) == ["the report does not have it"]
    submitted.change(laxer_profile)
    [why] = replace(submitted.check().verification, report=found.report).no_success_of(GUIDE)
    assert why.startswith("its scenarios and profiles are not those of this suite")


def test_a_profile_that_is_required_is_one_that_there_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown profile dra-extendet; known are dra-core-clust"):
        verify_command(tmp_path, require_profile=["dra-extendet"])


@pytest.mark.parametrize(
    ("date", "said"),
    [
        ("2026-01-10T00:00:00Z", []),
        ("2026-01-02T00:00:00+00:00", []),
        ("2026-01-01T00:00:00Z", ["the run ended on 2026-01-01T00:00:00Z, 9 days ago"]),
        ("2026-01-12T00:00:00Z", ["the run ended on 2026-01-12T00:00:00Z, which is in the future"]),
        ("soon", ["the run ended: 'soon' is not a time like 2026-01-31T12:00:00+00:00"]),
    ],
)
def test_a_run_has_an_age(submitted: Submitted, date: str, said: list[str]) -> None:
    found = verification(submitted, date=date)
    now = datetime(2026, 1, 10, tzinfo=UTC)
    assert list(found.too_old(timedelta(days=8), now)) == said


def test_a_certificate_is_as_old_as_its_driver_check(submitted: Submitted) -> None:
    checked = DriverCheckSummary(
        digest="sha256:" + "0" * 64, date="2025-12-01T00:00:00Z", result=Result.SUCCESS, passed=1
    )
    found = verification(submitted, date="2026-01-09T00:00:00Z", driver_check=checked)
    now = datetime(2026, 1, 10, tzinfo=UTC)
    assert list(found.too_old(timedelta(days=8), now)) == [
        "driver-check began on 2025-12-01T00:00:00Z, 40 days ago"
    ]


def test_the_catalogue_has_what_a_run_needs(submitted: Submitted) -> None:
    submitted.write()
    kept = {item.id: item for item in read_evidence(submitted.evidence).catalogue}
    assert kept[WAITS].file == f"{WAITS}.yaml"
