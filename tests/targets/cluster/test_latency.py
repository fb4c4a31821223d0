"""How long claims waited, from what two watches say and when they say it."""

from __future__ import annotations

from typing import Any

from conformance.targets.cluster.latency import ClaimLatencies


class Heard(ClaimLatencies):
    """Tells it of objects at given times."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__("ours", lambda: self.now)

    def pod(self, at: float, uid: str, reason: str = "") -> None:
        self.now = at
        conditions = [{"type": "PodScheduled", "status": "False", "reason": reason}]
        self.hear_pod("MODIFIED", {"metadata": {"uid": uid}, "status": {"conditions": conditions}})

    def claim(self, at: float, uid: str, *pods: str, change: str = "MODIFIED") -> None:
        self.now = at
        reserved = [{"resource": "pods", "name": pod, "uid": pod} for pod in pods]
        status: dict[str, Any] = {"allocation": {}, "reservedFor": reserved} if pods else {}
        for namespace in ("ours", "another"):
            metadata = {"namespace": namespace, "uid": uid}
            self.hear_claim(change, {"metadata": metadata, "status": status})


def test_it_counts_from_the_later_of_claim_and_pod() -> None:
    heard = Heard()
    heard.claim(1.0, "early", change="ADDED")
    heard.pod(2.0, "a")
    heard.claim(2.5, "early", "a")
    heard.claim(4.0, "early", "a")  # written again, for another reason
    heard.pod(5.0, "b")
    heard.claim(6.0, "late", change="ADDED")
    heard.claim(6.25, "late", "b")
    assert heard.seconds == [0.5, 0.25]


def test_an_allocation_that_is_given_up_and_made_again_counts_again() -> None:
    heard = Heard()
    heard.pod(1.0, "a")
    heard.claim(1.0, "claim")
    heard.claim(2.0, "claim", "a")
    heard.claim(3.0, "claim")
    heard.pod(4.0, "b")
    heard.claim(4.5, "claim", "b")
    assert heard.seconds == [1.0, 0.5]


def test_who_was_told_to_wait_does_not_count() -> None:
    heard = Heard()
    for reason in ("Unschedulable", "SchedulingGated"):
        heard.pod(1.0, reason, reason)
        heard.pod(2.0, reason)  # said once is enough
        heard.claim(1.0, f"of-{reason}")
        heard.claim(9.0, f"of-{reason}", reason)
    heard.claim(1.0, "of-unknown")
    heard.claim(9.0, "of-unknown", "nobody-told-of-it")
    heard.claim(1.0, "of-two")
    heard.claim(9.0, "of-two", "a", "b")
    heard.claim(9.0, "gone", change="DELETED")
    assert heard.seconds == []
