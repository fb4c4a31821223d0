"""``python -m conformance.cli`` is ``dra-conformance``."""

from conformance.cli.app import main

main()
