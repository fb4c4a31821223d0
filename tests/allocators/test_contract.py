"""What is read of an answer, beyond its schema, and what is told of many."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from conformance.allocators.contract import read_answer
from conformance.allocators.judging import answer_of_reference, judge_answer
from conformance.allocators.program import ProgramError
from conformance.allocators.record import CheckHeader, QuestionRecord
from conformance.allocators.report import CheckResult, summarize
from conformance.cli.commands.schema import make_schema
from tests.allocators.asking import GPU, question

YES = {"outcome": "allocated"}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (YES, "node node-0: 0 answers for 1 pods that follow"),
        ({**YES, "following": [YES, YES]}, "node node-0: 2 answers for 1 pods that follow"),
        (
            {**YES, "allocations": [{}], "following": [{**YES, "allocations": [{}, {}]}]},
            "node node-0: 2 allocations for 1 claims of pod 2",
        ),
    ],
)
def test_an_answer_has_an_entry_for_each_pod(fields: dict[str, Any], said: str) -> None:
    asked = question("row", following=[{"claims": question("next")["claims"]}])
    line = json.dumps({"id": "row", "nodes": [{"node": "node-0", **fields}]}).encode()
    with pytest.raises(ProgramError, match=said):
        read_answer(line, asked)


def test_extended_resources_may_need_a_claim_more() -> None:
    asked = question("pod", pod={"spec": {"containers": []}})
    node = {"node": "node-0", **YES, "allocations": [{}, {}]}
    answer = read_answer(json.dumps({"id": "pod", "nodes": [node]}).encode(), asked)
    assert len(answer.nodes[0].allocations) == 2


@pytest.mark.parametrize("field", ["allocations", "following"])
def test_null_is_an_empty_list_as_go_writes_it(field: str) -> None:
    node = {"node": "node-0", "outcome": "none", field: None}
    answer = read_answer(json.dumps({"id": "q", "nodes": [node]}).encode(), question("q"))
    assert (answer.nodes[0].allocations, answer.nodes[0].following) == ([], [])
    schema = make_schema("allocation-answer")
    assert [*Draft202012Validator(schema).iter_errors({"id": "q", "nodes": [node]})] == []


def test_null_for_the_nodes_is_as_if_they_were_absent() -> None:
    line = b'{"id": "q", "nodes": null, "unsupported": "taints"}'
    assert read_answer(line, question("q")).unsupported == "taints"
    with pytest.raises(ProgramError, match="does not answer for node 'node-0'"):
        read_answer(b'{"id": "q", "nodes": null}', question("q"))


def test_times_of_hours_stay_apart_from_what_stands_beside_them() -> None:
    slow = QuestionRecord(number=0, id="q", features=["optionalNodeOperations"])
    records = [slow.model_copy(update={"milliseconds": 24102.9}), slow, slow]
    records.append(slow.model_copy(update={"milliseconds": 86_399_999.0}))
    table = [*summarize(CheckResult(CheckHeader(program=["x"]), records))]
    row = next(line for line in table if line.startswith("optionalNodeOperations"))
    assert row.split()[1:] == ["4", "0", "0", "0", "0", "0", "12051", "86399999"]
    assert max(map(len, table)) <= 80


def test_an_empty_request_is_the_same_as_none() -> None:
    """Go writes the field of a claim that has its devices already, where nobody has set it."""
    asked = question("q")
    held = {"driver": GPU, "pool": "node-0", "device": "gpu-0"}
    asked["claims"][0]["status"] = {"allocation": {"devices": {"results": [held]}}}
    given = {"devices": {"results": [{**held, "request": ""}]}}
    node = {"node": "node-0", **YES, "allocations": [given]}
    answer = read_answer(json.dumps({"id": "q", "nodes": [node]}).encode(), asked)
    assert [*judge_answer(asked, answer, answer_of_reference(asked), "identical")] == []
