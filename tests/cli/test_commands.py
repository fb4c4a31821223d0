"""The command line: what it prints, its exit codes; no mistake of a user is a traceback."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from pkgutil import iter_modules

import pytest
from typer import Typer

from conformance.cli import commands
from conformance.cli.app import COMMANDS, load_command
from conformance.data import scenarios_dir
from conformance.digest import document_digest
from conformance.results.read import load_results
from conformance.targets.opening.options import DEFAULT_VERSION
from tests.cli.conftest import Call
from tests.compare.cluster import allocation, claim, decision

SHARE = "core/generated-claim-containers-share-device"


def test_the_reference_shows_mig_devices_that_are_made_when_they_are_needed(call: Call) -> None:
    chosen = ("run", "-k", "core/two-requests-two-devices", "--driver", "gpu.nvidia.com-mig")
    done = call(*chosen, "--simulate", "a30x4", "--dynamic-mig")
    assert done.code == 0, done
    assert "1 passed" in done.out
    without = call(*chosen, "--simulate", "a30x4")
    assert "needs 2 devices, 0 available" in " ".join(without.out.split())


def test_a_run_on_the_reference_writes_every_report(call: Call, tmp_path: Path) -> None:
    done = call("run", "-k", SHARE, "-o", "out")
    assert done.code == 0, done
    assert "1 passed" in done.out
    assert {file.name for file in (tmp_path / "out").iterdir()} >= {
        "results.ndjson",
        "junit.xml",
        "allure-results",
        "report.html",
    }


def test_output_behind_a_pipe_has_neither_colour_nor_padding(call: Call) -> None:
    done = call("run", "-k", "core/cel*")
    assert done.code == 0
    assert "\x1b" not in done.out
    assert [line for line in done.out.splitlines() if line != line.rstrip()] == []


def test_a_scenario_that_fails_is_exit_code_1_with_its_place(call: Call, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text(
        """\
apiVersion: dra-conformance/v1
kind: Scenario
metadata: {name: wrong}
spec:
  summary: A pod without a claim is expected to fail.
  level: core
  feature: ResourceClaim
  tier: node
  references: [https://kep.k8s.io/4381]
  steps:
  - apply:
    - apiVersion: v1
      kind: Pod
      metadata: {name: p}
      spec: {containers: [{name: c, image: "${image}", command: "${probe.hold}"}]}
  - expect:
    - {pod: p, phase: Failed, eventually: 5s}
"""
    )
    done = call("run", "wrong.yaml")
    assert done.code == 1
    assert "wrong.yaml:16" in done.out
    assert "expected pod p in phase Failed within 5 s; found pod p: phase Running" in " ".join(
        done.out.split()
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("run nofile.yaml", "nofile.yaml: no such file or folder"),
        ("run -k nothing-like-this", "no scenario with an id that matches -k"),
        ("run --feature Foo", "unknown feature Foo; no known name is like it"),
        (f"run --resume {__file__}", "is a file; give the folder of the interrupted run"),
        ("show nofile.yaml", "nofile.yaml: no such file or folder"),
        ("new scenario A_B", "the name 'A_B' is not valid: a lowercase RFC 1123 subdomain must"),
        ("page nofolder -o site", "nofolder: is not a folder; give the folder of submissions"),
        ("replay r.ndjson --cordon a", "r.ndjson: what would fit is asked of a snapshot"),
        ("replay r.ndjson --questions -", "r.ndjson: what would fit is asked of a snapshot"),
        ("run ", "an argument is empty; is a shell variable unset?"),
        ("run --output= -k x", "the option --output= has no value"),
        ("list --json --markdown", "exclude each other"),
        ("list --markdown --features", "exclude each other"),
        ("schema report --example", "there is no example of report"),
        ("cleanup --cluster local --run a,b=c", "--run-id 'a,b=c'"),
        ("run --driver nope", "no driver profile 'nope': shipped are dra.cpu, dra.net"),
        ("run --simulate nope", "--simulate nope: profile 'nope' is neither"),
        ("run --compare", "--compare judges a cluster against the reference"),
        ("run -n 0", "must be at least 1, not 0"),
        ("run --run-id UPPER", "--run-id 'UPPER'"),
        ("run --run-id abc\n", "--run-id 'abc\\n'"),
        ("run -k [", "no scenario with an id that matches -k"),
        (f"run --driver {'x' * 5000}", "File name too long"),
        ("replay .", ".: is empty"),
        ("run --cluster local", "--cluster goes with --target cluster"),
        ("run --target cluster", "needs --cluster kubeconfig, kind or local"),
        ("run --target cluster --cluster kubeconfig --kubeconfig x", "x: no such file"),
        ("run --target cluster --cluster local --nodes 0 --binaries x", "lacks these executables"),
        ("run --target cluster --cluster local --driver-command 'a", "No closing quotation"),
        ("list --feature SchedulerFilterTimeout", "0 with --feature SchedulerFilterTimeout"),
        ("run --tier cloud", "'cloud' is not one of"),
        ("cleanup", "give --cluster"),
        ("lint nofile.yaml", "nofile.yaml: no such file or folder"),
        ("replay nofile.json", "nofile.json: cannot be read"),
        ("verify no.yaml no.ndjson", "no.yaml: cannot be read"),
        ("runn", "unknown command 'runn'; did you mean run?"),
        ("cluster status --name never-was", "there is no local cluster never-was"),
        ("schema cloud", "'cloud' is not one of"),
        ("cluster up --name a/b", "cluster name 'a/b'"),
        ("cluster up --feature-gate x", "write NAME=true or NAME=false"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(call: Call, arguments: str, says: str) -> None:
    done = call(*arguments.split(" "))
    assert done.code == 2
    assert says in " ".join((done.out + done.err).split())


def test_a_context_must_be_named(call: Call, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(
        "contexts: [{name: prod, context: {cluster: c}}]\ncurrent-context: prod\n"
        "clusters: [{name: c, cluster: {server: https://127.0.0.1:1}}]\n"
    )
    done = call("run", "--target", "cluster", "--cluster", "kubeconfig", "--kubeconfig", "config")
    assert done.code == 2
    assert "name the context to use with --context" in done.err
    assert "connecting" not in done.err
    assert "prod" in done.err


def test_a_server_that_does_not_answer_is_exit_code_3(call: Call, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(
        "contexts: [{name: down, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n"
        "clusters: [{name: c, cluster: {server: https://127.0.0.1:1}}]\n"
    )
    flags = ["--target", "cluster", "--cluster", "kubeconfig", "--kubeconfig", "config"]
    done = call("run", *flags, "--context", "down")
    assert done.code == 3
    assert "https://127.0.0.1:1" in done.err


@pytest.mark.parametrize("kind", ["local", "kind"])
def test_a_cluster_that_never_was_is_not_said_to_be_removed(call: Call, kind: str) -> None:
    done = call("cluster", "down", "--cluster", kind, "--name", "never-was")
    assert (done.code, done.out) == (
        0,
        f"there is no {kind} cluster never-was; nothing was removed\n",
    )


def test_list_as_json_is_for_programs(call: Call) -> None:
    rows = json.loads(call("list", "--json", "-k", SHARE).out)
    assert rows[0]["id"] == SHARE
    assert rows[0]["tier"] == "node"


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Give a text as standard input."""
    return lambda text: monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()))
    )


def test_lint_reads_what_a_template_renders(call: Call, pipe: Callable[[str], None]) -> None:
    pipe("apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClass\nmetadata: {name: gpu}\n")
    done = call("lint", "-")
    assert done.code == 2
    assert "<stdin>:2: $.kind" in done.out
    assert "DeviceClass" in done.out


@pytest.mark.parametrize("text", ["", "# a comment\n", "---\n---\n"])
def test_lint_of_an_empty_file_fails(call: Call, text: str, pipe: Callable[[str], None]) -> None:
    Path("empty.yaml").write_text(text)
    pipe(text)
    for name, shown in (("empty.yaml", "empty.yaml"), ("-", "<stdin>")):
        done = call("lint", name)
        assert (done.code, f"{shown}:1: is empty" in done.out) == (2, True), done
    below = call("lint", ".")
    assert (below.code, "empty.yaml:1: warning: is empty" in below.out) == (0, True), below


def test_lint_of_a_repository_leaves_out_what_is_not_for_it(call: Call, tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text("services: {web: {image: nginx}}\n")
    (tmp_path / "package.json").write_text('{"name": "web"}')
    (tmp_path / "chart.yaml").write_text("kind: {{ .Values.kind }}\n- {{ end }}\n")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/broken.yaml").write_text("a: [")
    (tmp_path / "old.json").write_text(
        '{"apiVersion": "resource.k8s.io/v1alpha2", "kind": "ResourceClass"}'
    )
    done = call("lint", ".")
    assert done.code == 2
    assert "old.json:1: $.kind" in done.out
    assert "chart.yaml: warning: is a template" in done.out
    assert done.out.endswith("1 file checked, 1 error, 1 warning; 3 files of other tools skipped\n")
    assert call("lint", ".", "--exclude", "*.json", "--exclude", "chart.yaml").code == 0


def test_lint_holds_scenarios_against_the_profile_that_they_are_for(
    call: Call, tmp_path: Path
) -> None:
    scenario = scenarios_dir() / "core/two-requests-two-devices.yaml"
    assert call("lint", "--driver", "gpu.nvidia.com", str(scenario)).code == 0
    (tmp_path / "fpga.yaml").write_text(
        "apiVersion: dra-conformance/v1\nkind: DriverProfile\nmetadata: {name: fpga}\n"
        "spec: {driver: fpga.example.com, classes: {fpga: {name: fpga, spec: {}}}}\n"
    )
    done = call("lint", "--driver", "fpga.yaml", str(scenario))
    assert done.code == 2
    assert "variable ${class.gpu} is not in the driver profile" in done.out


def test_features_and_drivers_are_listed(call: Call) -> None:
    assert "DeviceTaints  (" in call("list", "--features").out
    assert "gpu.nvidia.com-mig  (" in call("list", "--drivers").out
    assert "kind: DriverProfile" in call("schema", "profile", "--example").out


def test_shards_are_merged_and_a_missing_one_is_no_pass(call: Call) -> None:
    wanted = ("-k", "core/late-cl")
    for index in (1, 2):
        assert call("run", *wanted, "--shard", f"{index}/2", "-o", f"part-{index}").code == 0
    done = call("merge", "part-1", "part-2/results.ndjson", "-o", "all")
    assert done.code == 0, done.err
    assert sorted(item.name for item in Path("all").iterdir()) == sorted(
        item.name for item in Path("part-1").iterdir()
    )
    half = call("merge", "part-2", "-o", "half")
    assert half.code == 3
    assert "1 shard missing: 1" in " ".join(half.out.split())
    kept = call("merge", "part-1", "part-2", "-o", "part-1")
    assert kept.code == 2
    assert "holds one of the files" in kept.err


def test_a_report_is_made_from_results_and_verified(call: Call, tmp_path: Path) -> None:
    assert call("run", "--level", "core", "-o", "out").code == 0
    about = ["--organization=o", "--project=p", "--url=https://example.com", "--version=1"]
    made = call("report", "out/results.ndjson", *about, "-o", "report.yaml")
    assert made.code == 4, made
    said = " ".join(made.out.split())
    assert (
        "dra-core-cluster: uncertified dra-core-driver: partial without a result of driver" in said
    )
    assert "hardware: simulated certifies nothing: the run was on the suite's own reference" in said
    verified = call("verify", "report.yaml", "out/results.ndjson")
    assert verified.code == 0
    assert "dra-core-cluster: uncertified\n" in verified.out
    report = (tmp_path / "report.yaml").read_text()
    (tmp_path / "report.yaml").write_text(report.replace("failed: 0", "failed: 1", 1))
    folder = call("verify", "report.yaml", "out")
    assert (folder.code, "give the result file in it" in folder.err) == (2, True)
    forged = call("verify", "report.yaml", "out/results.ndjson")
    assert forged.code == 1
    assert "differs:" in forged.out


@pytest.mark.parametrize("make", ["same", "hardlink", "symlink"])
def test_a_report_never_takes_the_place_of_its_evidence(
    call: Call, tmp_path: Path, make: str
) -> None:
    assert call("run", "-k", SHARE, "-o", "out").code == 0
    results = tmp_path / "out" / "results.ndjson"
    before = results.read_bytes()
    output = results if make == "same" else tmp_path / "report.yaml"
    if make == "hardlink":
        output.hardlink_to(results)
    elif make == "symlink":
        output.symlink_to(results)
    about = ["--organization=o", "--project=p", "--url=https://example.com", "--version=1"]
    done = call("report", str(results), *about, "-o", str(output))
    assert done.code == 2
    assert "is the result file itself, the evidence for the report" in done.err
    assert results.read_bytes() == before


def test_a_later_run_that_dies_leaves_no_report_of_an_earlier_one(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("run", "-k", SHARE, "-o", "out").code == 0
    monkeypatch.setattr("conformance.report.files.JUnitFile", Dies)
    done = call("run", "-k", SHARE, "-o", "out")
    assert done.code == 3
    assert not {"junit.xml", "report.html"} & {file.name for file in (tmp_path / "out").iterdir()}


class Dies:
    def __init__(self, *_: object) -> None:
        pass

    def handle(self, _: object) -> None:
        raise OSError("dead")


def test_judging_again_says_first_what_came_of_it_and_never_calls_nothing_conformant(
    call: Call, tmp_path: Path
) -> None:
    assert call("run", "-k", SHARE, "-o", "out").code == 0
    done = call("replay", "out/results.ndjson")
    assert done.code == 3
    assert done.out.splitlines()[0] == "nothing was judged; verdicts: none"
    assert json.loads(call("replay", "--json", "out/results.ndjson").out)[0]["judgements"] == []
    saved = decision([claim()], [allocation("gpu-7")])
    (tmp_path / "decision.json").write_text(json.dumps(saved))
    done = call("replay", "decision.json")
    assert done.code == 1
    assert done.out.splitlines()[0] == "not conformant; verdicts: 1 inadmissible"


def test_what_was_asked_for_stands_in_the_result_file(call: Call, tmp_path: Path) -> None:
    done = call(
        "run", "-k", SHARE, "--simulate", "b200x8", "--feature-gate", "DRAListTypeAttributes=true"
    )
    assert done.code == 0, done
    run = load_results(tmp_path / "dra-conformance-results" / "results.ndjson").run
    assert run.feature_gates["DRAListTypeAttributes"] is True
    assert run.options == {
        "target": "reference",
        "driver": "nvml-dra-driver",
        "simulate": "b200x8",
        "nodes": 1,
        "kubernetesVersion": DEFAULT_VERSION,
        "featureGates": {"DRAListTypeAttributes": True},
        "workers": 1,
        "only": [SHARE],
    }
    assert run.driver_profile is not None
    assert run.driver_profile["metadata"] == {"name": "nvml-dra-driver"}
    assert run.driver_profile_digest == document_digest(run.driver_profile)


def test_each_command_that_is_listed_is_there_and_begins_its_help_alike() -> None:
    for name, text in COMMANDS.items():
        command = load_command(name)
        if not isinstance(command, Typer):
            assert command.__doc__.split()[0] == text.split()[0]


def test_each_module_beside_them_is_a_command() -> None:
    modules = {module.name for module in iter_modules(commands.__path__)}
    assert modules == {name.replace("-", "_") for name in COMMANDS}


@pytest.mark.parametrize("name", [*COMMANDS, "new profile", "cluster up", "cluster down"])
def test_help_fits_80_columns_and_shows_no_python_type(call: Call, name: str) -> None:
    done = call(*name.split(), "--help")
    assert done.code == 0
    assert [line for line in done.out.splitlines() if len(line) > 80] == []
    assert not re.search(r"<|list\[|\[\[|\{[a-z]|\w\.\.\.$", done.out, re.MULTILINE)


def test_the_options_of_a_run_are_in_groups(call: Call) -> None:
    out = call("run", "--help").out
    headings = [line for line in out.splitlines() if re.fullmatch(r"\w.*:", line)]
    assert headings[:3] == ["Arguments:", "Target:", "Driver:"]
    assert {"Selection:", "Execution:", "Output:"} < {*headings}
    assert headings[-1] == "Options:"
