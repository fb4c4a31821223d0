"""Times of a result file that cannot be those of one run are refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from conformance.certify.times import TimeCheck
from conformance.results.read import ResultFileError, load_results
from tests.certify.evidence import SHARED, Forgery


def shifted(text: str, **by: float) -> str:
    return (datetime.fromisoformat(text) + timedelta(**by)).isoformat()


def the_end_is_a_day_later(it: Forgery) -> None:
    it.footer["finishedAt"] = shifted(it.footer["finishedAt"], days=1)


def the_end_and_the_length_are_a_day_later(it: Forgery) -> None:
    the_end_is_a_day_later(it)
    it.footer["seconds"] += 86_400


def the_end_is_before_the_beginning(it: Forgery) -> None:
    it.footer["finishedAt"] = shifted(it.header["startedAt"], seconds=-30)


def all_is_a_year_later(it: Forgery) -> None:
    it.header["startedAt"] = shifted(it.header["startedAt"], days=365)
    it.footer["finishedAt"] = shifted(it.footer["finishedAt"], days=365)
    for record in it.scenarios:
        record["startedAt"] = shifted(record["startedAt"], days=365)


def the_run_is_two_years_older_but_for_its_claims(it: Forgery) -> None:
    it.header["target"] = "cluster"
    it.header["startedAt"] = shifted(it.header["startedAt"], days=-730)
    it.footer["finishedAt"] = shifted(it.footer["finishedAt"], days=-730)
    for record in it.scenarios:
        record["startedAt"] = shifted(record["startedAt"], days=-730)


def the_end_is_yesterday(it: Forgery) -> None:
    it.footer["finishedAt"] = "yesterday"


def the_beginning_is_a_date(it: Forgery) -> None:
    it.header["startedAt"] = "2026-11-26"


def the_run_took_longer_than_it_lasted(it: Forgery) -> None:
    it.footer["seconds"] += 3600


def a_scenario_is_of_another_day(it: Forgery) -> None:
    it.scenario(SHARED)["startedAt"] = shifted(it.scenario(SHARED)["startedAt"], days=-1)


def a_scenario_began_at_no_time(it: Forgery) -> None:
    it.scenario(SHARED)["startedAt"] = ""


def a_scenario_began_soon(it: Forgery) -> None:
    it.scenario(SHARED)["startedAt"] = "soon"


def a_step_took_longer_than_its_scenario(it: Forgery) -> None:
    it.scenario(SHARED)["steps"][0]["seconds"] = it.scenario(SHARED)["seconds"] + 1


def earlier_attempts_took_longer_than_the_run(it: Forgery) -> None:
    failed = {"outcome": "failed", "message": "no", "where": "", "seconds": 7200.0}
    it.scenario(SHARED).update(outcome="flaky", attempts=[failed])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (the_end_is_a_day_later, "the run took .* s, and there are 864.* between its beginning"),
        (the_end_and_the_length_are_a_day_later, "the run ended on .*, its last scenario on"),
        (the_end_is_before_the_beginning, "the run ended on .*, before it began"),
        (all_is_a_year_later, "the run ended on .* in the future"),
        (the_run_is_two_years_older_but_for_its_claims, "a claim was created on .* from the run"),
        (the_end_is_yesterday, "'yesterday' is not a time like"),
        (the_beginning_is_a_date, "'2026-11-26' is not a time like"),
        (the_run_took_longer_than_it_lasted, "the run took 36.* s, and there are"),
        (a_scenario_is_of_another_day, f"{SHARED}: ran from .*, the run from"),
        (a_scenario_began_at_no_time, f"{SHARED}: has steps, and no time at which it began"),
        (a_scenario_began_soon, f"{SHARED}: 'soon' is not a time like"),
        (a_step_took_longer_than_its_scenario, f"{SHARED}: took .* s, its step 0"),
        (earlier_attempts_took_longer_than_the_run, f"{SHARED}: ran from .*, the run from"),
    ],
)
def test_times_that_are_not_of_one_run_are_refused(
    forgery: Forgery, change: Callable[[Forgery], None], message: str
) -> None:
    change(forgery)
    forgery.write()
    forgery.claim()
    of_times = [item for item in forgery.verify().discrepancies if item.code == "times"]
    assert [item for item in of_times if re.search(message, str(item))], of_times


@pytest.mark.parametrize("where", ["footer", "scenario", "step"])
def test_negative_seconds_are_no_result_file(forgery: Forgery, where: str) -> None:
    scenario = forgery.scenario(SHARED)
    {"footer": forgery.footer, "scenario": scenario, "step": scenario["steps"][0]}[where][
        "seconds"
    ] = -5
    forgery.write()
    with pytest.raises(ResultFileError, match=r"seconds: Input should be greater than or equal"):
        load_results(forgery.results)


def test_a_clock_that_is_a_little_off_is_none_of_the_evidences_faults(forgery: Forgery) -> None:
    forgery.header["startedAt"] = shifted(forgery.header["startedAt"], seconds=40)
    forgery.footer["finishedAt"] = shifted(forgery.footer["finishedAt"], seconds=45)
    forgery.write()
    behind = datetime.now(UTC) - timedelta(hours=20)
    assert list(TimeCheck(load_results(forgery.results), behind).of_run()) == []
