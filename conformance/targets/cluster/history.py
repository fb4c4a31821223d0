"""Past states of objects, so that the state of the whole cluster at one moment can be rebuilt.

Watches of different kinds are not in order with one another. What orders them is the
``resourceVersion``: all kinds share the revisions of one etcd, and since Kubernetes 1.35 the API
promises that they can be compared as numbers. So every state is kept with its version, and "just
before claim C was allocated" is: the last state of each object below the version in which C has
its allocation.

What remains unknown is how far behind the scheduler's own caches were when it decided.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kube.values import Obj


@dataclass(slots=True)
class _Life:
    """One object's states, oldest first; the last is None once it is deleted."""

    versions: list[int] = field(default_factory=list)
    states: list[Obj | None] = field(default_factory=list)
    newest_version: int = 0  # of any news, which may have brought no new state

    def at(self, version: int) -> Obj | None:
        index = bisect_right(self.versions, version) - 1
        return self.states[index] if index >= 0 else None


class History:
    """States of the objects of several kinds, by uid. Safe for threads."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._lives: dict[str, dict[str, _Life]] = {}  # kind -> uid -> life
        self._gaps: list[tuple[str, int, int]] = []  # kind, last known version, the next
        self._compared: dict[str, int] = {}  # kind -> version of a list that said nothing new
        self.newest = 0

    def add(self, kind: str, uid: str, version: int, state: Obj | None) -> None:
        """Take a state (None: deleted) that an object has since ``version``.

        Older than what is known, or the same again: only noted as seen.
        """
        with self._condition:
            life = self._lives.setdefault(kind, {}).setdefault(uid, _Life())
            last_state = life.states[-1] if life.states else None
            if version > life.newest_version and not (last_state == state and life.states):
                life.versions.append(version)
                life.states.append(state)
            life.newest_version = max(life.newest_version, version)
            self.newest = max(self.newest, version)
            self._condition.notify_all()

    def add_list(self, kind: str, uids: Iterable[str], version: int, since: int = 0) -> None:
        """Take a list made at ``version``: what is not in it and not newer is deleted by then.

        ``since``: the version up to which the kind was known; between the two it is not.
        """
        listed_uids = set(uids)
        with self._condition:
            known_version = max(since, self._compared.get(kind, 0))
            if known_version < version:
                self._gaps.append((kind, known_version, version))
            missing = [
                uid
                for uid, life in self._lives.get(kind, {}).items()
                if uid not in listed_uids
                and life.newest_version <= version
                and life.states[-1] is not None
            ]
        for uid in missing:
            self.add(kind, uid, version, None)

    def at(self, version: int) -> list[Obj]:
        """Return all objects of all kinds as they were at ``version``."""
        with self._condition:
            lives = [life for by_uid in self._lives.values() for life in by_uid.values()]
            return [state for life in lives if (state := life.at(version)) is not None]

    def explain_gap(self, version: int) -> str:
        """Explain why the state just before ``version`` is not known, "" where it is."""
        with self._condition:
            for kind, since, until in self._gaps:
                if since < version <= until:
                    return (
                        f"the record has a gap: the API server had forgotten where the watch of"
                        f" {kind} was, so nothing of it is known between resourceVersion {since}"
                        f" and {until}, and the allocation was made at {version}"
                    )
        return ""

    def states(self, kind: str) -> Iterator[tuple[str, list[tuple[int, Obj | None]]]]:
        """Yield each object's uid and its states with the versions since which it had them."""
        with self._condition:
            states_by_uid = [
                (uid, list(zip(life.versions, life.states, strict=True)))
                for uid, life in self._lives.get(kind, {}).items()
            ]
        yield from states_by_uid

    def await_list(
        self, kind: str, listed: Mapping[str, int], version: int, timeout: float
    ) -> bool:
        """Wait until everything is known that a list made at ``version`` has or no longer has.

        Then the kind is known up to that version, however long nothing was said of it.

        Args:
            listed: uid -> version of each listed object.
            timeout: seconds.
        """
        deadline = time.monotonic() + timeout
        with self._condition:
            while not self._has(kind, listed, version):
                seconds = deadline - time.monotonic()
                if seconds <= 0:
                    return False
                self._condition.wait(seconds)
            self._compared[kind] = max(version, self._compared.get(kind, 0))
            return True

    def prune(self, floor: int) -> None:
        """Forget states that no request for versions from ``floor`` on needs."""
        with self._condition:
            self._gaps = [gap for gap in self._gaps if gap[2] >= floor]
            for by_uid in self._lives.values():
                for uid, life in list(by_uid.items()):
                    index = bisect_right(life.versions, floor) - 1
                    if index > 0:
                        del life.versions[:index], life.states[:index]
                    if life.states[-1] is None and life.versions[-1] <= floor:
                        del by_uid[uid]

    def _has(self, kind: str, listed: Mapping[str, int], version: int) -> bool:
        lives = self._lives.get(kind, {})
        for uid, listed_version in listed.items():
            if uid not in lives or lives[uid].newest_version < listed_version:
                return False
        return all(
            uid in listed or life.newest_version > version or life.states[-1] is None
            for uid, life in lives.items()
        )
