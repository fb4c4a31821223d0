"""However the command line ends: one message, no traceback, and exit code 1 for findings only."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from conformance.cli import main
from conformance.cli.output import print_progress, printable
from conformance.compare.reference import run_on_reference
from conformance.results.events.result import RunResult
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import open_reference
from tests import programs
from tests.cli.conftest import Call
from tests.report.builders import ended, started

ROOT = Path(__file__).parents[2]
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJlLXg"


def shell(tmp_path: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which ``dc`` is the command line; its exit code is that of dc."""
    done = programs.ended(
        ["bash", "-c", f'dc() {{ "$PYTHON" -m conformance "$@"; }}; {command}'],
        cwd=tmp_path,
        env={"PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        timeout=120,
    )
    assert "Traceback" not in done.stdout + done.stderr
    assert "Exception ignored" not in done.stderr
    return done


@pytest.fixture
def _broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def select(*_: object) -> None:
        raise ZeroDivisionError("of\x1b[2J token=abc123 in it")

    monkeypatch.setattr("conformance.cli.commands.list.select", select)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.mark.usefixtures("_broken")
def test_a_fault_of_the_suite_is_inconclusive_and_its_traceback_is_kept(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = call("list")
    [line] = err.splitlines()
    assert code == 3
    assert line.startswith(
        "error: unexpected ZeroDivisionError: of\\x1b[2J token=<redacted> in it; "
    )
    [file] = tmp_path.glob("dra-conformance-error-*.txt")
    assert line.endswith(f"please report it with {file}")
    kept = file.read_text()
    assert "Traceback" in kept
    assert "abc123" not in kept
    assert "\x1b" not in kept
    monkeypatch.setenv("DRA_CONFORMANCE_DEBUG", "1")
    with pytest.raises(SystemExit, match="3"):
        main()
    assert "Traceback" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("command", ["list -k core/cel", "lint scenarios.yaml", "run -k core/cel"])
def test_output_that_does_not_arrive_is_inconclusive(tmp_path: Path, command: str) -> None:
    (tmp_path / "scenarios.yaml").write_text("kind: ConfigMap\n")
    done = shell(tmp_path, f"dc {command} >/dev/full")
    assert done.returncode == 3
    [line] = done.stderr.splitlines()
    assert "No space left on device" in line


def test_a_pipe_that_is_closed_ends_a_command_quietly(tmp_path: Path) -> None:
    done = shell(tmp_path, "dc list -k core/cel | true; exit ${PIPESTATUS[0]}")
    assert done.returncode == 141
    assert done.stderr == ""


def test_a_run_goes_on_when_nobody_reads_along(tmp_path: Path) -> None:
    done = shell(tmp_path, "dc run -k core/cel -o out | true; exit ${PIPESTATUS[0]}")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "CONFORMANT" in (tmp_path / "out" / "report.html").read_text().upper()


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_a_run_needs_no_standard_output(tmp_path: Path, closed: str) -> None:
    assert shell(tmp_path, f"dc run -k core/cel -o out {closed}").returncode == 0
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize(
    "module", ["typer", "conformance.cli.commands.run", "conformance.engine.suite"]
)
def test_ctrl_c_while_it_starts_is_one_message(tmp_path: Path, module: str) -> None:
    (tmp_path / "start.py").write_text(
        "import os, signal, sys\n"
        "class Press:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sys.meta_path.insert(0, Press())\n"
        "from conformance.cli import main\n"
        "main()\n"
    )
    done = shell(tmp_path, '"$PYTHON" start.py run -k core/cel')
    assert done.returncode == 3
    [line] = done.stderr.splitlines()
    assert line.startswith("error: interrupted")


def test_ctrl_c_inside_of_an_exec_ends_with_the_exit_code_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "start.py").write_text(
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from conformance.cli import entry, main\n"
        "entry._run_app = lambda: exec('os.kill(os.getpid(), signal.SIGINT)')\n"
        "main()\n"
    )
    assert shell(tmp_path, '"$PYTHON" start.py').returncode == 3


@pytest.mark.parametrize("output", ["file", "file/sub", "/proc/foo", "x" * 5000])
def test_a_place_that_takes_no_reports_is_told_before_the_target_is_opened(
    tmp_path: Path, output: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(
        "conformance.cli.commands.run.open_target", lambda *_: pytest.fail("opened")
    )
    done = call("run", "-k", "core/cel", "-o", output)
    assert done.code == 2
    assert "choose another folder with -o" in done.err


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("$.spec.\x1b]0;pwn\x07: unknown", "$.spec.\\x1b]0;pwn\\x07: unknown"),
        ("unexpected token: expected a number", "unexpected token: expected a number"),
        ("ends with:\n  using token=SECRETXYZ", "ends with:\n  using token=<redacted>"),
        ("ends with:\n  password: hunter2", "ends with:\n  password: <redacted>"),
        (f"ends with:\n  {JWT}", "ends with:\n  <redacted>"),
        ("x\n  Authorization: Bearer abcdef0123456789", "x\n  Authorization: Bearer <redacted>"),
    ],
)
def test_an_error_shows_no_escape_sequence_and_no_credential_of_a_log(
    text: str, shown: str
) -> None:
    assert printable(text) == shown


def test_lint_shows_no_escape_sequence(tmp_path: Path, call: Call) -> None:
    (tmp_path / "s.yaml").write_text(
        'apiVersion: dra-conformance/v1\nkind: Scenario\nspec: {"\\e]0;pwn": 1}\n'
    )
    code, out, _ = call("lint", "s.yaml")
    assert code == 2
    assert "\x1b" not in out
    assert "\\x1b]0;pwn" in out


def test_list_and_verify_show_no_escape_sequence_of_a_file(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s.yaml").write_text(
        "apiVersion: dra-conformance/v1\nkind: Scenario\nmetadata: {name: s}\nspec:\n"
        '  summary: "A summary that clears \\e[2J the terminal."\n'
        "  level: core\n  feature: ResourceClaim\n  tier: allocation\n"
        "  references: [https://kep.k8s.io/4381]\n"
        "  steps: [{expect: [{none: {kind: ResourceClaim}}]}]\n"
    )
    assert "clears \\x1b[2J the" in call("list", "s.yaml").out
    about = SimpleNamespace(organization="\x1b[4m", project="\x1b[5m", version="\x1b[7m")
    report = SimpleNamespace(
        implementation=about, profiles=[], hardware="simulated", uncertified=["\x1b[3m"]
    )
    forged = SimpleNamespace(
        discrepancies=["\x1b[2J"],
        notes=["\x1b[1m"],
        departures=["\x1b[0m"],
        report=report,
        exit_code=1,
    )
    monkeypatch.setattr("conformance.cli.commands.verify.verify_report", lambda *_: forged)
    done = call("verify", "report.yaml", "results.ndjson")
    assert done.code == 1
    assert done.out.splitlines() == [
        "report.yaml: \\x1b[4m: \\x1b[5m \\x1b[7m",
        "differs: \\x1b[2J",
        "note: \\x1b[1m",
        "other suite: \\x1b[0m",
        "hardware: simulated",
        "certifies nothing: \\x1b[3m",
        "the report does not match the result file",
    ]


def test_ctrl_c_on_the_reference_does_not_begin_the_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped = RunResult(run=started([]), finished=(), footer=ended([], interrupted=True))
    monkeypatch.setattr("conformance.compare.reference.run_suite", lambda *_: stopped)
    options = TargetOptions()
    with open_reference(options) as opened, pytest.raises(KeyboardInterrupt):
        run_on_reference([], opened, "run0")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_ends_a_run_in_order(tmp_path: Path, number: signal.Signals) -> None:
    """A closed terminal and a cancelled CI job: the result file is complete all the same."""
    (tmp_path / "start.py").write_text(
        "import os, signal, sys\n"
        "from conformance.cli import main\n"
        "from conformance.engine import suite\n"
        f"signal.signal({int(number)}, signal.SIG_DFL)\n"  # these tests may run under nohup
        "run_scenario = suite.run_scenario\n"
        "def signalled(*arguments):\n"
        f"    os.kill(os.getpid(), {int(number)})\n"
        "    return run_scenario(*arguments)\n"
        "suite.run_scenario = signalled\n"
        "main()\n"
    )
    done = shell(tmp_path, '"$PYTHON" start.py run -k core/cel -o out')
    assert done.returncode == 3
    assert '"interrupted": true' in (tmp_path / "out" / "results.ndjson").read_text()


def test_a_run_under_nohup_goes_on(tmp_path: Path) -> None:
    (tmp_path / "start.py").write_text(
        "import os, signal, sys\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from kube.base.signals import interrupted_by_signals\n"
        "with interrupted_by_signals():\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    done = programs.ended([sys.executable, "start.py"], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == -signal.SIGINT or "KeyboardInterrupt" in done.stderr
    assert done.stderr.count("os.kill(os.getpid(), signal.SIGTERM)") == 1


def test_progress_has_no_escape_sequences_and_no_commands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_progress("waiting for \x1b[2J\n::stop-commands::x")
    assert capsys.readouterr().err == "waiting for \\x1b[2J\n\\x3a:stop-commands::x\n"
