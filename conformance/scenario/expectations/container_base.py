"""What expectations about containers have in common: they read what containers have shown."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from pydantic import Field

from conformance.scenario.base import Strict
from conformance.scenario.expectations.base import Cluster, Known, Seen, Timed, lint_seen_by
from kube.observations import ContainerView

Views = Mapping[str, ContainerView]  # ``pod/container`` -> what it has shown.


class SeenBy(Strict):
    """What is expected of each of some containers."""

    seen_by: tuple[str, ...] = Field(min_length=1, description="containers as pod/container")

    @property
    def pods(self) -> tuple[str, ...]:
        return tuple(entry.partition("/")[0] for entry in self.seen_by)


class ContainersExpectation(Timed):
    """Something that each of some containers shows.

    Attributes:
        final: whether what all have shown stays so for as long as the containers run.
    """

    final: ClassVar[bool] = False

    @property
    def _of(self) -> SeenBy:
        """The first field, which has the containers and what is expected of them."""
        fields = (getattr(self, name) for name in type(self).model_fields)
        return next(value for value in fields if isinstance(value, SeenBy))

    @abstractmethod
    def wrong(self, views: Views, cluster: Cluster) -> list[str]:
        """What is not as described, now that all have shown something."""

    @property
    def waits_for_start(self) -> bool:
        return True

    def evaluate(self, cluster: Cluster) -> Seen:
        observed: dict[str, Any] = {self.key(): list(self._of.seen_by)}
        views: dict[str, ContainerView] = {}
        for entry in self._of.seen_by:
            pod, _, container = entry.partition("/")
            view = cluster.observe.container(pod, container)
            if view is None:
                return Seen(False, f"{entry} has shown nothing yet", observed)
            views[entry] = view
        wrong = self.wrong(views, cluster)
        observed["fits"] = not wrong
        return Seen(not wrong, "; ".join(wrong) or "as described", observed, self.final)

    def lint(self, known: Known) -> None:
        lint_seen_by(known, self._of.seen_by, self.key())
        known.needed((self.key(),), "kubelet")

    def placed(self) -> Iterable[tuple[str, int]]:
        return ((pod, 1) for pod in self._of.pods)
