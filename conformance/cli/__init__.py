"""The command line: one entry point to the engine (the pytest plugin is the other)."""

from conformance.cli.entry import main

__all__ = ["main"]
