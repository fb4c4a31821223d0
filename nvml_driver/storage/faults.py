"""Names the points at which the driver changes something outside its own memory.

"Nothing is lost at any crash point" can only be shown if every crash point has a name and can be
hit. In production nothing is installed and a point costs one comparison; the crash tests install
a hook that kills the process (SIGKILL) at the nth point. No flag or variable leads here, so no
deployment can be made to kill its driver.
"""

from __future__ import annotations

from collections.abc import Callable

_hook: Callable[[str], None] | None = None


def reach(point: str) -> None:
    """Call the hook, if one is installed, with the point that the driver has come to."""
    if _hook is not None:
        _hook(point)


def install_hook(hook: Callable[[str], None] | None) -> None:
    """Call ``hook`` at each point from now on; None: do nothing again."""
    global _hook  # noqa: PLW0603, one process has one driver and one way to die
    _hook = hook
