"""The pages that git does not track, each made from the code or from a tracked file of results.

What is expensive to measure is kept beside the program that measures it, never in a page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from benchmarks import scale
from ci import matrix_page
from ci.allocators import page as allocators
from ci.cel_implementations import page as selectors
from ci.drivers import page as drivers
from ci.schedulers import page as schedulers
from ci.testing import record
from ci.testing.parts import parts
from conformance.cli.commands.list import render_catalogue
from tests.mutants.real import record as real_mutants
from tests.mutants.real_driver import measure as real_driver
from tests.pairs import page as pairs
from tests.scenario import kill_matrix
from tests.scenario.shipped import shipped
from tests.statements import pages as claims
from tests.statements import statements

_PARTS: Final = """\
# Parts of the tests

What `make test` and `make everything` run. A part exists because it notices something that no
other does ([why](decisions/0042-two-rings-of-tests.md)); `ci/test PART` runs one. When each last
ran is kept in `ci/last-run.json` (`ci/test --page`).

"""


def _pairs() -> str:
    return pairs.page(pairs.scenarios_of_pairs(shipped()), pairs.read_reasons())


def _minors() -> str:
    return matrix_page.minors_page(matrix_page.read_columns())


def _skew() -> str:
    return matrix_page.skew_page(matrix_page.read_columns())


def _kills() -> str:
    return kill_matrix.page(kill_matrix.read_kills(), kill_matrix.read_not_alone())


MAKERS: Final[Mapping[str, Callable[[], str]]] = {
    "statements.md": lambda: claims.table(statements(), kill_matrix.read_kills()),
    "coverage.md": lambda: claims.coverage(statements(), kill_matrix.read_kills()),
    "pairs.md": _pairs,
    "scenarios.md": lambda: render_catalogue(shipped()),
    "kill-matrix.md": _kills,
    "real-mutants.md": lambda: real_mutants.page(real_mutants.read()),
    "real-mutants-driver.md": lambda: real_driver.page(real_driver.read_noticed()),
    "matrix.md": _minors,
    "skew.md": _skew,
    "scale.md": scale.page,
    "schedulers.md": schedulers.text,
    "implementations.md": allocators.text,
    "selectors.md": selectors.text,
    "parts.md": lambda: _PARTS + record.table(parts(), record.read_kept()),
}
"""Page below docs/ -> what makes it; the pages of drivers are made together."""


def make_pages() -> dict[str, str]:
    """Every page that git does not track: its path below docs/ -> its Markdown."""
    return {name: make() for name, make in MAKERS.items()} | drivers.pages()
