"""What goes wrong with simulated GPUs, or others do to them, as the control file says it."""

from __future__ import annotations

import pynvml

from nvml_driver.nvml.library import NvmlLibrary


class Injector:
    """Injects events and faults into a simulated machine."""

    def __init__(self, library: NvmlLibrary) -> None:
        assert library.machine is not None
        self.control = library.machine.control

    def fail(
        self,
        function: str,
        error: str | int,
        *,
        gpu: int | None = None,
        first: int = 1,
        last: int | None = None,
    ) -> None:
        """Let a function fail from its ``first`` to its ``last`` call, counted from now.

        Args:
            function: NVML's name of it, with the version suffix; ``*`` for all.
            error: NVML's number or name, for example ``GPU_IS_LOST``.
            gpu: index; None: asked of any GPU, or of none.
            first: the first call that fails.
            last: the last call that fails, None for all later ones.
        """
        code = error if isinstance(error, int) else getattr(pynvml, f"NVML_ERROR_{error}")
        until = "" if last is None else f" {last}"
        self.control(f"fault {_where(gpu)} {function} {code} {first}{until}")

    def heal(self, function: str = "*", *, gpu: int | None = None) -> None:
        """Forget the faults of a function, or all."""
        self.control(f"clear {_where(gpu)} {function}")

    def xid(
        self,
        gpu: int,
        number: int,
        *,
        instances: tuple[int, int] | None = None,
        recovery: int = pynvml.NVML_GPU_RECOVERY_ACTION_NONE,
    ) -> None:
        """Raise an XID on a GPU, or in a GPU instance and compute instance of it.

        ``recovery`` is what NVML says from then on has to be done.
        """
        where = "" if instances is None else f" {instances[0]} {instances[1]}"
        self.control(
            f"recovery {gpu} {recovery}",
            f"event {gpu} {pynvml.nvmlEventTypeXidCriticalError} {number}{where}",
        )

    def recover(self, gpu: int) -> None:
        """Let NVML say that nothing has to be done to a GPU, as after a reset."""
        self.control(f"recovery {gpu} {pynvml.NVML_GPU_RECOVERY_ACTION_NONE}")

    def create_mig(self, gpu: int, profile_id: int, start: int) -> None:
        """Make a MIG device as somebody else would with ``nvidia-smi mig -cgi <id>:<start> -C``."""
        self.control(f"mig {gpu} create {profile_id} {start}")

    def destroy_mig(self, gpu: int, gi_id: int) -> None:
        """Destroy a GPU instance and what is in it, whoever uses it."""
        self.control(f"mig {gpu} destroy {gi_id}")

    def set_mig_mode(self, gpu: int, *, enabled: bool) -> None:
        """Switch MIG mode as somebody else would with ``nvidia-smi -mig``."""
        self.control(f"mig {gpu} mode {int(enabled)}")


def _where(gpu: int | None) -> str:
    return "-" if gpu is None else str(gpu)
