"""Asks a bare real API server and ours the same drawn requests, and compares the answers.

    ci/fuzz-api -n 2000 --seed 1

The seed and the number of a case name it for good. A difference that nothing explains is made small
and written as JSON. With ``--record FILE`` the real answers that ours equal are kept, so that tests
see a change.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import secrets
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kubesim.world import KUBERNETES
from localkube.binaries.build import resolve_binaries
from localkube.layout import default_cache
from tests.kubesim.apidiff import recorded
from tests.kubesim.apidiff.answers import Answer
from tests.kubesim.apidiff.core import core_case_of
from tests.kubesim.apidiff.differences import Difference, ask, compare, explain, make_small
from tests.kubesim.apidiff.groups import group_case_of
from tests.kubesim.apidiff.requests import Case, case_of, watch_of
from tests.kubesim.apidiff.servers import PROGRAMS, Ours, Real, bare_server, create_namespace

_AGAIN: Final = 2
_AT_ONCE: Final = 4
"""Cases that are put to the real server at the same time."""
_EVERY: Final = 20.0
"""Seconds between two lines about the progress."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 when every difference is explained, 1 otherwise."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    server = parser.add_mutually_exclusive_group()
    server.add_argument("--binaries", type=Path, help="folder with etcd and kube-apiserver")
    server.add_argument("--kubeconfig", type=Path, help="of a bare API server that runs")
    parser.add_argument("--kubernetes", default=KUBERNETES, help="its version")
    parser.add_argument(
        "--gate", action="append", default=[], help="NAME=true or NAME=false, many times"
    )
    parser.add_argument("-n", type=int, default=2000, help="how many cases")
    parser.add_argument("--seed", type=int, default=0, help="default: a fresh one")
    drawn = parser.add_mutually_exclusive_group()
    drawn.add_argument("--watches", action="store_true", help="draw watches, a second each")
    drawn.add_argument(
        "--core", action="store_true", help="draw pods, nodes and requests for pools' status"
    )
    drawn.add_argument(
        "--groups", action="store_true", help="draw PodGroups and pods of these; needs gates"
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--output", type=Path, default=Path("build/apidiff"))
    parser.add_argument("--record", type=Path, help="file to keep the real answers in")
    options = parser.parse_args(arguments)
    options.seed = options.seed or secrets.randbelow(1 << 32)
    gates = {
        name: value == "true" for name, _, value in (gate.partition("=") for gate in options.gate)
    }
    last = options.first + options.n - 1
    sys.stdout.write(f"seed {options.seed}, cases {options.first} to {last}\n")
    with ExitStack() as stack:
        if options.kubeconfig is not None:
            real = Real(options.kubeconfig)
            create_namespace(real)
        else:
            version = f"v{options.kubernetes}"
            binaries = resolve_binaries(options.binaries, default_cache(), PROGRAMS, _say, version)
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="apidiff-")))
            real = stack.enter_context(bare_server(binaries, folder, gates))
        ours = stack.enter_context(closing(Ours(options.kubernetes, gates)))
        return _run(options, real, ours)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _run(options: argparse.Namespace, real: Real, ours: Ours) -> int:
    kinds: Counter[str] = Counter()
    explained: Counter[str] = Counter()
    requests = 0
    reported_at = time.monotonic()
    recording = recorded.Recording(options.record) if options.record else None
    draw = _choose_draw(options)
    numbers = range(options.first, options.first + options.n)
    for number, case, real_answers in _ask_ahead(real, draw, options.seed, numbers):
        our_answers = ask(ours, case)
        requests += len(case.requests)
        for index, pair in enumerate(zip(real_answers, our_answers, strict=True)):
            why = explain(Difference(case, index, *pair)) if pair[0] != pair[1] else None
            if why is not None:
                explained[why] += 1
        difference = compare(case, real_answers, our_answers)
        if recording is not None and difference is None:
            recording.add(options.seed, number, real_answers)
        for _ in range(_AGAIN):  # a second may have begun for one of them
            if difference is not None:
                difference = compare(case, ask(real, case), ask(ours, case))
        if difference is not None:
            if difference.kind not in kinds:
                _save(options.output, number, make_small(difference, real, ours))
            kinds[difference.kind] += 1
        if time.monotonic() - reported_at > _EVERY:
            reported_at = time.monotonic()
            sys.stdout.write(
                f"{number - options.first + 1} of {options.n} cases, {requests} requests,"
                f" {kinds.total()} differences of {len(kinds)} kinds\n"
            )
            sys.stdout.flush()
    if recording is not None:
        recording.close()
    for why, count in explained.most_common():
        sys.stdout.write(f"explained {count}: {why}\n")
    for kind, count in kinds.most_common():
        sys.stdout.write(f"{count}: {kind}\n")
    sys.stdout.write(f"{requests} requests: {kinds.total()} unexplained differences\n")
    return 1 if kinds else 0


def _choose_draw(options: argparse.Namespace) -> Callable[[int, int], Case]:
    if options.watches:
        return watch_of
    if options.groups:
        return group_case_of
    return core_case_of if options.core else case_of


def _ask_ahead(
    real: Real, draw: Callable[[int, int], Case], seed: int, numbers: Iterable[int]
) -> Iterator[tuple[int, Case, list[Answer]]]:
    """Yield each case with its answers, in their order; a few of the next are asked meanwhile."""
    asked: deque[tuple[int, Case, Future[list[Answer]]]] = deque()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for number in numbers:
            case = draw(seed, number)
            asked.append((number, case, pool.submit(ask, real, case)))
            if len(asked) > 4 * _AT_ONCE:
                first, earlier, answers = asked.popleft()
                yield first, earlier, answers.result()
        for first, earlier, answers in asked:
            yield first, earlier, answers.result()


def _save(folder: Path, number: int, difference: Difference) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "kind": difference.kind,
        "before": [dataclasses.asdict(s) for s in difference.case.requests[: difference.index]],
        "request": dataclasses.asdict(difference.sent),
        "real": dataclasses.asdict(difference.real),
        "ours": dataclasses.asdict(difference.ours),
    }
    (folder / f"{number}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(main())
