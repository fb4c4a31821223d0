"""``python -m kubesim serve``: a simulated Kubernetes over HTTPS, for kubectl and any client."""

from __future__ import annotations

import gc
import sys


def main() -> int:
    """Run the command line; returns the exit code."""
    gc.disable()  # modules are no garbage, and to look at them again and again takes time
    from kubesim import command

    gc.freeze()
    gc.enable()
    return command.main()


if __name__ == "__main__":
    sys.exit(main())
