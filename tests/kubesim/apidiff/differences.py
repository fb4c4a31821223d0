"""Differences between two servers: found, explained, made small and counted by kind."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from conformance.fuzz.shrink_json import shrink
from tests.kubesim.apidiff.answers import NO_ANSWER, Answer
from tests.kubesim.apidiff.requests import Case, Sent
from tests.kubesim.apidiff.servers import Server


@dataclass(frozen=True)
class Difference:
    """Two answers that are not the same. ``index``: of the request in its case."""

    case: Case
    index: int
    real: Answer
    ours: Answer

    @property
    def sent(self) -> Sent:
        return self.case.requests[self.index]

    @property
    def kind(self) -> str:
        """What differs, without names and numbers: the same for differences of one cause."""
        parts = [_summarize(self.sent)]
        for answer in (self.real, self.ours):
            text = answer.body.get("message", "") if isinstance(answer.body, dict) else answer.body
            parts.append(f"{answer.code} {_generalize(str(text))[:160]}")
        if self.real.code == self.ours.code < 400:
            parts.append("; ".join(_list_paths(self.real.body, self.ours.body, ""))[:200])
        if self.real.warnings != self.ours.warnings:
            parts.append("warnings")
        return " | ".join(parts)


def _summarize(sent: Sent) -> str:
    return f"{sent.method} {sent.content_type.rpartition('/')[2] if sent.body else ''}"


def _generalize(text: str) -> str:
    text = re.sub(r'"[^"]*"', '"…"', text)
    return re.sub(r"\d+", "N", text)


def _list_paths(real: Any, ours: Any, path: str) -> Iterator[str]:
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in sorted({*real, *ours}):
            if key not in real or key not in ours:
                yield f"{path}.{key} only in {'ours' if key in ours else 'real'}"
            else:
                yield from _list_paths(real[key], ours[key], f"{path}.{key}")
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        for one, other in zip(real, ours, strict=True):
            yield from _list_paths(one, other, f"{path}[]")
    elif real != ours:
        yield f"{path}: {str(real)[:40]} != {str(ours)[:40]}"


def ask(server: Server, case: Case) -> list[Answer]:
    """Send the requests of a case, then those that remove what they made."""
    answers = [server.send(sent) for sent in case.requests]
    for sent in case.cleanup:
        server.send(sent)
    return answers


def compare(case: Case, real: list[Answer], ours: list[Answer]) -> Difference | None:
    """Return the first difference between the answers to a case that nothing explains."""
    for index, (real_answer, our_answer) in enumerate(zip(real, ours, strict=True)):
        if real_answer != our_answer:
            difference = Difference(case, index, real_answer, our_answer)
            if explain(difference) is None:
                return difference
            if real_answer.code >= 400 or our_answer.code >= 400:
                continue
            return None  # what comes later stands on another state
    return None


_OF_MAP: Final = re.compile(
    r"\[[^]0-9]|\.(labels|annotations|attributes|capacity|allocatable|counters|limits)(\.|$)"
)
"""A field that is a value of a map, or the map whose keys an error is about."""


def _sort_causes(answer: Answer) -> list[str]:
    """Return the causes of a refusal, if one is of a value of a map."""
    details = answer.body.get("details") if isinstance(answer.body, dict) else None
    causes = (details or {}).get("causes") or []
    is_of_map = any(_OF_MAP.search(cause.get("field", "")) for cause in causes)
    return sorted(json.dumps(cause, sort_keys=True) for cause in causes) if is_of_map else []


def _tell_once(answer: Answer) -> Answer:
    """Return a refusal whose equal causes are told once, in any order."""
    details = answer.body.get("details") if isinstance(answer.body, dict) else None
    causes = (details or {}).get("causes") or []
    told = sorted({json.dumps(cause, sort_keys=True) for cause in causes})
    return (
        Answer(answer.code, answer.warnings, {**answer.body, "details": told}) if told else answer
    )


def _without_token(difference: Difference) -> Answer:
    """Return the real answer without the token of a next page, if the request has a limit."""
    real, body = difference.real, difference.real.body
    if "limit" not in dict(difference.sent.query) or not isinstance(body, dict):
        return real
    meta = {name: item for name, item in (body.get("metadata") or {}).items() if name != "continue"}
    return Answer(real.code, real.warnings, {**body, "metadata": meta})


def _without_last_bookmark(answer: Answer) -> Answer:
    """Return the events of a watch without a bookmark at their end that does not end the first."""
    events = answer.body if isinstance(answer.body, list) else [answer.body] * bool(answer.body)
    last = events[-1] if events else None
    is_bookmark = isinstance(last, dict) and last.get("type") == "BOOKMARK"
    if is_bookmark and "initial-events-end" not in json.dumps(last):
        events = events[:-1]
    return Answer(answer.code, answer.warnings, events)


def _is_counted_for_time(difference: Difference) -> bool:
    """Return whether only the real server counts a change: of a taint's time, which is now."""
    real, ours = difference.real.body, difference.ours.body
    if not isinstance(real, dict) or "taint" not in json.dumps(difference.sent.body):
        return False
    return [*_list_paths(real, ours, "")] == [".metadata.generation: 2 != 1"]


_GATED_KINDS: Final = ("devicetaintrules", "resourcepoolstatusrequests")
_HUGE: Final = "1000000000000000000000"
_EXPLANATIONS: Final[dict[str, Callable[[Difference], bool]]] = {
    "a quantity of 10^21, which Kubernetes prints as 1": lambda difference: (
        _HUGE in json.dumps([sent.body for sent in difference.case.requests])
    ),
    "a kind without its gate, which a real one serves with all versions": lambda difference: (
        difference.ours.code == 404
        and any(f"/{plural}" in difference.sent.path for plural in _GATED_KINDS)
    ),
    "the connection ends without an answer, as a real server's handler broke": (
        lambda difference: difference.real == NO_ANSWER
    ),
    "an error in an update, which of nodes and until 1.36 is a cause each time it is looked for": (
        lambda difference: _tell_once(difference.real) == _tell_once(difference.ours)
    ),
    "a page beside objects of other cases, after which a real server says that it may go on": (
        lambda difference: _without_token(difference) == difference.ours
    ),
    "a taint without a time, which has another one where a second has begun since": (
        _is_counted_for_time
    ),
    "the last bookmark of a watch, for which a real server may come too late": (
        lambda difference: (
            _without_last_bookmark(difference.real) == _without_last_bookmark(difference.ours)
        )
    ),
    "the order of errors in a map, over which Go ranges by chance": lambda difference: (
        _sort_causes(difference.real) == _sort_causes(difference.ours) != []
    ),
}
"""Reason -> whether it is that of a difference; all are in docs of kubesim."""


def explain(difference: Difference) -> str | None:
    """Return why a difference is known and left, None if nothing explains it."""
    return next((why for why, holds in _EXPLANATIONS.items() if holds(difference)), None)


def make_small(difference: Difference, real: Server, ours: Server) -> Difference:
    """Return a difference of the same kind in a smaller body."""
    smallest = difference

    def still_differs(problem: dict[str, Any]) -> bool:
        nonlocal smallest
        if "body" not in problem:
            return False
        body = problem["body"]
        sent = dataclasses.replace(difference.sent, body=body)
        requests = [*difference.case.requests[: difference.index], sent]
        case = Case(requests, difference.case.cleanup)
        again = compare(case, ask(real, case), ask(ours, case))
        if again is None or again.kind != difference.kind:
            return False
        smallest = again
        return True

    if isinstance(difference.sent.body, dict | list):
        shrink({"body": difference.sent.body}, still_differs)
    return smallest
