"""Reads the claims of one call: in parallel, and never longer than the call may take.

The kubelet waits 45 s for a prepare call with all claims of a pod (kubernetes
``pkg/kubelet/cm/dra/plugin/dra_plugin.go``), then drops the connection's answer and starts over. A
claim that the API server is slow to give must cost that claim its turn, not the whole call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any, Protocol, TypeVar

from nvml_driver.errors import DriverError, PrepareError

BUDGET_SECONDS = 40.0  # For a call of a kubelet that does not say how long it waits.
_SPARE_SECONDS = 3.0  # So that the answer comes before the kubelet gives up.
_PARALLEL = 8

ClaimGetter = Callable[[str, str], Mapping[str, Any] | None]
"""Namespace and name to the ResourceClaim (resource.k8s.io/v1), None if there is none."""


class ClaimReference(Protocol):
    """A ``Claim`` message of either version of the DRA API."""

    namespace: str
    uid: str
    name: str


_R = TypeVar("_R", bound=ClaimReference)


def describe_claim(reference: ClaimReference) -> str:
    """Return the claim in words, as errors name it."""
    return f"claim {reference.namespace}/{reference.name} (uid {reference.uid})"


def limit_seconds(time_remaining: float | None) -> float:
    """Return the seconds to spend on a call.

    Its caller waits for ``time_remaining`` seconds; None: it does not say.
    """
    seconds = BUDGET_SECONDS if time_remaining is None else time_remaining - _SPARE_SECONDS
    return max(0.0, min(seconds, BUDGET_SECONDS))


class ClaimFetcher:
    """Reads claims with a few threads."""

    def __init__(self, get_claim: ClaimGetter) -> None:
        self._get_claim = get_claim
        self._threads = ThreadPoolExecutor(_PARALLEL, thread_name_prefix="claims")

    def stop(self) -> None:
        """Give up the claims that are not read yet."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def fetch(
        self, references: Sequence[_R], seconds: float
    ) -> Iterator[tuple[_R, Mapping[str, Any] | PrepareError]]:
        """Yield each claim, or why there is none, as they come, within ``seconds``."""
        deadline = time.monotonic() + seconds
        running: dict[Future[Mapping[str, Any]], _R] = {
            self._threads.submit(self._get, reference): reference for reference in references
        }
        try:
            for future in as_completed(list(running), timeout=max(0.0, seconds)):
                reference = running.pop(future)
                yield reference, _outcome_of(future, reference)
                if time.monotonic() > deadline:
                    break  # preparing the claims took all the time
        except TimeoutError:
            pass
        for future, reference in running.items():
            future.cancel()
            yield (
                reference,
                PrepareError(
                    f"{describe_claim(reference)} was not read and prepared within {seconds:.0f} "
                    "s, because the API server or the claims before it were slow; the kubelet will "
                    "try again"
                ),
            )

    def _get(self, reference: ClaimReference) -> Mapping[str, Any]:
        where = describe_claim(reference)
        try:
            claim = self._get_claim(reference.namespace, reference.name)
        except DriverError as error:
            raise PrepareError(f"{where} cannot be read: {error}") from None
        if claim is None:
            raise PrepareError(f"{where} does not exist")
        uid = (claim.get("metadata") or {}).get("uid")
        if uid != reference.uid:
            raise PrepareError(f"{where} was replaced: the claim of that name has uid {uid}")
        return claim


def _outcome_of(
    future: Future[Mapping[str, Any]], reference: ClaimReference
) -> Mapping[str, Any] | PrepareError:
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, PrepareError):
        return error
    return PrepareError(
        f"{describe_claim(reference)} cannot be read: internal error of the driver: "
        f"{type(error).__name__}: {error}"
    )
