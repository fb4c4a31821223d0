"""What expectations about containers have in common: they read what containers have shown."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from pydantic import Field

from conformance.scenario.base import Strict
from conformance.scenario.expectations.base import Cluster, Evaluation, Timed, lint_seen_by
from conformance.scenario.lint_context import LintContext
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
    def _containers(self) -> SeenBy:
        """Return the first field, which has the containers and what is expected of them."""
        fields = (getattr(self, name) for name in type(self).model_fields)
        return next(value for value in fields if isinstance(value, SeenBy))

    @abstractmethod
    def find_problems(self, views: Views, cluster: Cluster) -> list[str]:
        """Return what is not as described, once all containers have shown something."""

    @property
    def waits_for_start(self) -> bool:
        return True

    def evaluate(self, cluster: Cluster) -> Evaluation:
        observed: dict[str, Any] = {self.leading_key(): list(self._containers.seen_by)}
        views: dict[str, ContainerView] = {}
        for entry in self._containers.seen_by:
            pod, _, container = entry.partition("/")
            view = cluster.observe.container(pod, container)
            if view is None:
                return Evaluation(False, f"{entry} has shown nothing yet", observed)
            views[entry] = view
        problems = self.find_problems(views, cluster)
        observed["fits"] = not problems
        return Evaluation(not problems, "; ".join(problems) or "as described", observed, self.final)

    def lint(self, lint: LintContext) -> None:
        lint_seen_by(lint, self._containers.seen_by, self.leading_key())
        lint.requires((self.leading_key(),), "kubelet")

    def list_scheduled_pods(self) -> Iterable[tuple[str, int]]:
        return ((pod, 1) for pod in self._containers.pods)
