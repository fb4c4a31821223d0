"""DeviceClasses of the driver profile: runs on one cluster do not take them from another."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.data import scenarios_dir
from conformance.engine.leftovers import sweep
from conformance.engine.objects.classes import SharedClass, ensure_classes, used_by
from conformance.engine.objects.ledger import Ledger
from conformance.scenario.driver.profile import DriverProfile, load_profile
from kube.base.errors import InfrastructureError, TargetError
from kube.errors import ApiError
from kube.nodes import RUN_LABEL
from kube.values import Obj, Ref
from tests.engine.miniature import Miniature, MiniScope, refusing

PROFILE: DriverProfile = load_profile("nvml-dra-driver", scenarios_dir() / "drivers")
NAMES = sorted(entry.name for entry in PROFILE.spec.classes.values())


def ref(name: str = NAMES[0]) -> Ref:
    return Ref("resource.k8s.io/v1", "DeviceClass", name)


class Run:
    """A run that uses the classes."""

    def __init__(self, target: Miniature, name: str) -> None:
        self.ledger = Ledger(target.scope(f"dra-{name}"), {RUN_LABEL: name})
        self.names = ensure_classes(PROFILE, target.scope(f"dra-{name}"), self.ledger)

    def end(self) -> tuple[str, ...]:
        return self.ledger.cleanup(5.0)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_last_of_several_runs_removes_them(order: tuple[int, int, int]) -> None:
    target = Miniature()
    runs = [Run(target, name) for name in ("one", "two", "three")]
    assert [sorted(run.names) for run in runs] == [NAMES] * 3
    for index in order[:2]:
        assert runs[index].end() == ()
        assert sorted(item.name for item in target.objects) == NAMES
        assert target.owned(("one", "two", "three")[index]) == []
    assert runs[order[2]].end() == ()
    assert target.objects == {}


def test_a_class_that_no_run_has_made_is_left_as_it_is() -> None:
    target = Miniature()
    theirs: Obj = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": NAMES[0], "annotations": {"a": "b"}},
        "spec": {},
    }
    target.scope("x").create(theirs)
    before = dict(target.objects[ref()])
    run = Run(target, "one")
    assert NAMES[0] not in run.names
    assert run.end() == ()
    assert target.objects == {ref(): before}


def test_what_a_killed_run_used_stays_until_it_is_cleaned_up() -> None:
    target = Miniature()
    Run(target, "killed")
    assert Run(target, "two").end() == ()
    assert sorted(item.name for item in target.owned("killed")) == NAMES
    assert sweep(target, "killed") == ()
    assert target.objects == {}


@pytest.mark.parametrize("order", [("killed", "alive"), ("alive", "killed")])
def test_cleaning_up_after_one_run_leaves_the_classes_to_the_others(order: tuple[str, str]) -> None:
    target = Miniature()
    runs = {name: Run(target, name) for name in order}
    assert sweep(target, "killed") == ()
    assert sorted(item.name for item in target.owned("alive")) == NAMES
    assert runs["alive"].end() == ()
    assert target.objects == {}


def test_a_class_of_an_older_suite_is_shared_with_the_run_that_made_it() -> None:
    target = Miniature()
    run = Run(target, "one")
    for obj in target.objects.values():
        del obj["metadata"]["annotations"]
    assert Run(target, "two").end() == ()
    assert len(target.objects) == len(NAMES)
    assert run.end() == ()
    assert target.objects == {}


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, method: str, action: Callable[[], object], times: int = 1
) -> None:
    """Have something happen between a run's look at a class and what it does next."""
    real = getattr(MiniScope, method)
    left = [times]

    def late(scope: MiniScope, *arguments: object) -> object:
        if left[0]:
            left[0] -= 1
            action()
        return real(scope, *arguments)

    monkeypatch.setattr(MiniScope, method, late)


def test_a_run_that_joins_while_another_leaves_keeps_the_class(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = Miniature()
    first = Run(target, "one")
    late: list[Run] = []
    meanwhile(monkeypatch, "patch", lambda: late.append(Run(target, "two")))
    assert first.end() == ()
    assert sorted(item.name for item in target.owned("two")) == NAMES
    assert late[0].end() == ()
    assert target.objects == {}


def test_a_run_that_comes_while_the_last_one_deletes_makes_it_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = Miniature()
    first = Run(target, "one")
    second: list[bool] = []
    shared = SharedClass(NAMES[0], target.scope("dra-two"), "two")
    waited: list[float] = []
    real = MiniScope.get

    def get(scope: MiniScope, wanted: Ref) -> Obj | None:
        """The deletion happens while the second run waits."""
        if scope.namespace == "dra-two":
            waited.append(target.time)
            if len(waited) == 3:
                del target.objects[ref()]
        return real(scope, wanted)

    monkeypatch.setattr(MiniScope, "get", get)
    meanwhile(monkeypatch, "delete", lambda: second.append(shared.join({})))
    assert first.end() == ()
    assert second == [True]
    assert waited[-1] > 0


def test_two_runs_that_make_it_at_once_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    target = Miniature()
    first: list[Run] = []
    meanwhile(monkeypatch, "create", lambda: first.append(Run(target, "one")))
    second = Run(target, "two")
    assert sorted(second.names) == NAMES
    assert first[0].end() == ()
    assert len(target.objects) == len(NAMES)
    assert second.end() == ()
    assert target.objects == {}


def test_a_class_whose_last_user_died_while_it_deleted_it_is_told_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = Miniature()
    first = Run(target, "one")
    with monkeypatch.context() as patch:
        patch.setattr(MiniScope, "delete", lambda *_: None)
        assert f"{ref()} is still there after 5 s" in first.end()
    with pytest.raises(InfrastructureError, match="dra-conformance cleanup --run one"):
        Run(target, "two")
    assert sweep(target, "one") == ()
    assert target.objects == {}


def test_a_refusal_says_which_class_and_why() -> None:
    target = refusing(ApiError(403, "Forbidden", "no"), "DeviceClass")
    with pytest.raises(InfrastructureError, match=r"DeviceClass \S+, which.*403 Forbidden: no"):
        Run(target, "one")


def test_a_class_whose_creation_got_no_answer_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    target = Miniature()
    ledger = Ledger(target.scope("dra-one"), {RUN_LABEL: "one"})
    real = MiniScope.create

    def unsure(scope: MiniScope, obj: Obj) -> Obj:
        real(scope, obj)
        raise TargetError("no answer")

    monkeypatch.setattr(MiniScope, "create", unsure)
    with pytest.raises(TargetError):
        ensure_classes(PROFILE, target.scope("dra-one"), ledger)
    assert ledger.cleanup(5.0) == ()
    assert target.objects == {}


def test_a_class_that_cannot_be_deleted_is_left_behind_in_words() -> None:
    target = Miniature()
    run = Run(target, "one")

    def refuse(ref: Ref, obj: Obj) -> None:
        raise ApiError(403, "Forbidden", "not yours")

    target.on_delete = refuse
    assert f"{ref()} could not be deleted: not yours" in run.end()


def test_only_the_classes_of_a_run_are_its() -> None:
    target = Miniature()
    Run(target, "one")
    assert [item.ref for item in used_by(target.scope("x"), "two")] == []
    assert sorted(item.ref.name for item in used_by(target.scope("x"), "one")) == NAMES
