"""``python -m conformance.cli`` is ``dra-conformance``."""

from conformance.cli.entry import main

main()
