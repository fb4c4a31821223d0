"""``python -m conformance`` is ``dra-conformance``."""

from conformance.cli.entry import main

main()
