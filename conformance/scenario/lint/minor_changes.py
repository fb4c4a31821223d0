"""What manifests say that the Kubernetes minor they are for treats otherwise than the one before.

What that minor refuses, and what is unwise in every minor, is no part of it: other checks of `lint`
say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from conformance.scenario.documents.yamlfile import Document, PathTuple, Problem, as_mapping
from conformance.scenario.lint.objects import standalone_problems
from conformance.scenario.lint.refusals import find_author_path
from conformance.scenario.lint.retired import list_objects
from conformance.scenario.upgrades.finding import find_problems

_SAID_ALREADY: Final = frozenset(
    {"api-version-not-served", "empty-selector-warned", "refused-when-written"}
)


def list_changes(
    documents: Sequence[tuple[Document, bool]],
    before: str,
    after: str,
    report: Callable[[str], None],
) -> Iterator[tuple[Document, Problem]]:
    """Yield a warning for each thing that is otherwise, with its document.

    Args:
        documents: each with whether nothing is wrong in it by the rules of ``after``; of one where
            something is, the objects that are right are looked at.
        before: one of the minors that are known.
        after: a later one.
        report: told in a sentence what could not be looked at.
    """
    placed: list[tuple[Document, PathTuple, dict[str, Any]]] = [
        (document, path, dict(obj))
        for document, valid in documents
        for path, obj in list_objects(as_mapping(document.data))
        if valid or not any(found.severity == "error" for found in standalone_problems(obj, after))
    ]
    places = {id(obj): (document, path) for document, path, obj in placed}
    for problem in find_problems((obj for _, _, obj in placed), before, after, report=report):
        if problem.change not in _SAID_ALREADY:
            document, path = places[id(problem.item)]
            inner = find_author_path(problem.item, problem.path.removeprefix("$."))
            text = f"otherwise than in Kubernetes {before}: {problem.text}. {problem.advice}"
            yield document, Problem((*path, *inner), text, "warning")
