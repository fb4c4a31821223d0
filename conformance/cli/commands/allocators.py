"""``dra-conformance allocators``: the allocators of others, judged without a cluster."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from conformance.allocators.judging import Level
from conformance.cli.lines import parse_minor
from conformance.cli.output import print_progress, printable, write_named
from conformance.targets.opening.conversions import words_of
from kube.base.errors import UsageError
from kube.base.text import fold
from reference_allocator.gates import LATEST, MINORS

if TYPE_CHECKING:
    from conformance.allocators.questions import AskedQuestion
    from conformance.allocators.record import CheckHeader, Journal, QuestionRecord
    from conformance.allocators.report import CheckResult

allocators_command = typer.Typer(
    help="Judge the allocators of others, without a cluster.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

_PROGRESS_SECONDS = 10.0  # between two lines of progress
_LONGEST_SEED = 100  # it is in the id of each question


@allocators_command.callback()
def _group() -> None:
    """Judge the allocators of others, without a cluster."""


@allocators_command.command(short_help="Judge a program's answers to many questions.")
def check(
    program: Annotated[
        str,
        typer.Option(metavar="COMMAND", help="Command that answers questions, one JSON line each."),
    ] = "",
    level: Annotated[
        str,
        typer.Option(
            metavar="LEVEL",
            help="fits: which nodes; admissible: and devices that break no rule; identical: and"
            " those of Kubernetes.",
        ),
    ] = "fits",
    kubernetes: Annotated[
        str,
        typer.Option(metavar="MINOR", help=f"By whose rules: {', '.join(MINORS)}."),
    ] = LATEST,
    without: Annotated[
        str,
        typer.Option(
            metavar="FEATURE,...", help="Features that are not asked about; `list` names them."
        ),
    ] = "",
    questions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Questions or vectors in JSON lines. [default: random ones]"
        ),
    ] = None,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="The shipped vectors of the minor instead.")
    ] = False,
    count: Annotated[int, typer.Option(min=1, help="Number of random questions.")] = 1000,
    seed: Annotated[
        str, typer.Option(help="Their seed. [default: random]", show_default=False)
    ] = "",
    first: Annotated[int, typer.Option(min=0, help="Number of the first of the seed.")] = 0,
    timeout: Annotated[
        float,
        typer.Option(
            min=0.001,
            max=86_400,
            metavar="SECONDS",
            help="Time limit for each node of a question; each question has 5 s more.",
        ),
    ] = 10.0,
    small: Annotated[
        int, typer.Option(min=0, metavar="N", help="Differences that are made small, at most.")
    ] = 100,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the reports.")
    ] = Path("dra-allocators"),
    resume: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Go on with the check in this folder."),
    ] = None,
) -> None:
    """Judge a program's answers to many questions; the reference is the judge.

    The program reads questions from standard input and writes answers to standard output, one JSON
    line each, as docs/allocators.md describes (allocation/v1). One that hangs, dies, writes too
    much or answers something else is named and started again.

    Exit code: 0 all answers are right, 1 some are wrong, 2 usage error, 3 questions were not
    answered or not judged, 4 the program says that it does not support some.
    """
    from conformance.allocators.check import Checker
    from conformance.allocators.program import Program
    from conformance.allocators.questions import VECTORS
    from conformance.allocators.record import CheckHeader, Journal
    from conformance.allocators.report import CheckResult

    if vectors and questions:
        raise UsageError("--vectors and --questions: give one of them")
    if len(seed) > _LONGEST_SEED:
        raise UsageError(f"--seed: is longer than {_LONGEST_SEED} characters")
    questions = VECTORS if vectors else questions
    if resume is not None:
        if program or questions or seed:
            raise UsageError("--resume goes on with the options of its folder; give no others")
        header, journal = Journal.resume(resume)
    elif not program:
        raise UsageError("give --program, the command that answers questions")
    else:
        header = CheckHeader(
            program=list(words_of(program, "--program")),
            level=_parse_level(level),
            kubernetes=parse_minor(kubernetes),
            without=_parse_features(without),
            file=str(questions or ""),
            seed=seed or ("" if questions else secrets.token_hex(4)),
            first=first,
            count=count,
            timeout=timeout,
            small=small,
        )
    asked, total = _open_questions(header)
    with Program(header.program, header.timeout) as asking:
        checker = Checker(asking, header)
        if resume is None:
            journal = Journal.begin(output, header)
        if header.seed:
            print_progress(
                f"seed {header.seed}, from {header.first}, Kubernetes {header.kubernetes}"
            )
        with closing(journal):
            known, interrupted = journal.records[:], False
            try:
                _check_all(checker.check(asked, known), journal, total)
            except KeyboardInterrupt:
                interrupted = True
    result = CheckResult(
        header, journal.records, checker.left_out, checker.given_up, interrupted=interrupted
    )
    folder = resume or output
    _write_reports(folder, result)
    if interrupted:
        print_progress(f"interrupted; dra-conformance allocators check --resume {folder}")
    raise typer.Exit(result.exit_code)


def _parse_level(level: str) -> Level:
    if level not in get_args(Level):
        raise UsageError(f"--level {level}: expected one of {', '.join(get_args(Level))}")
    return cast("Level", level)


def _parse_features(text: str) -> list[str]:
    """Return the features of --without. Raises UsageError: one is not known."""
    from conformance.allocators.features import FEATURES

    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in FEATURES:
            near = get_close_matches(name, FEATURES, 1)
            meant = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(FEATURES)}"
            raise UsageError(f"--without {name}: is not known{meant}")
    return names


def _open_questions(header: CheckHeader) -> tuple[Iterable[AskedQuestion], int]:
    """Return the questions of a check, and how many they are."""
    from conformance.allocators.questions import draw_questions, read_questions

    if header.file:
        asked = read_questions(Path(header.file), header.kubernetes)
        return asked, len(asked)
    drawn = draw_questions(header.kubernetes, header.seed, header.first, header.count)
    return drawn, header.count


def _check_all(records: Iterator[QuestionRecord], journal: Journal, total: int) -> None:
    """Keep what comes of each question; print a difference or a fault as it comes, and progress."""
    printed_at = time.monotonic()
    for record in records:
        journal.add(record)
        if record.fault:
            print_progress("\n".join(fold(f"{record.id}: {record.fault}")))
        if time.monotonic() - printed_at > _PROGRESS_SECONDS:
            printed_at = time.monotonic()
            wrong = sum(item.differs for item in journal.records)
            print_progress(f"[{len(journal.records)}/{total}] {wrong} wrong")


def _write_reports(folder: Path, result: CheckResult) -> None:
    from conformance.allocators.report import junit_xml, make_document, make_vectors, summarize

    for line in summarize(result):
        typer.echo(printable(line))
    document = json.dumps(make_document(result), indent=1).encode()
    write_named(folder / "allocators.json", document)
    write_named(folder / "junit.xml", junit_xml(result))
    write_named(folder / "differences.ndjson", make_vectors(result))
    print_progress(f"reports in {folder}")


@allocators_command.command(name="vectors", short_help="Print the shipped vectors.")
def print_vectors(
    selectors: Annotated[
        bool,
        typer.Option("--selectors", help="Selectors in CEL with Kubernetes' answers instead."),
    ] = False,
) -> None:
    """Print the shipped vectors, for the unit tests of an allocator or of selectors."""
    from conformance.allocators.questions import VECTORS
    from conformance.allocators.selectors import SELECTORS

    typer.echo((SELECTORS if selectors else VECTORS).read_text(encoding="utf-8"), nl=False)


@allocators_command.command(name="list", short_help="List the features that questions use.")
def list_features() -> None:
    """List the features that questions use, which --without leaves out."""
    from conformance.allocators.features import FEATURES

    for name, (_, text) in FEATURES.items():
        typer.echo(f"{name:<24}{text}")
