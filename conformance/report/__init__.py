"""Reports: what happened in a run, for people, for CI systems and as a file.

Each module has one reporter (``handle(event)``). Reporters see the engine's events and what
``conformance.compare`` made of them, and nothing of a cluster.
"""
