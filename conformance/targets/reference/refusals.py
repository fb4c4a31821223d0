"""How our own driver's refusals reach the simulated kubelet, which knows no driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kubesim.nodes.driver import DriverError
from nvml_driver.errors import DriverError as NvmlDriverError


@contextmanager
def told_to_kubelet() -> Iterator[None]:
    """Raise what `nvml_driver` refuses as the error of a driver's call, with the same message."""
    try:
        yield
    except NvmlDriverError as error:
        raise DriverError(str(error)) from error
