"""Random problems for a real scheduler, judged by the reference, and made small.

`draw/` makes them, :mod:`~conformance.fuzz.isolate_problems` puts one on a cluster,
:mod:`~conformance.fuzz.run_problems` does that with many at once and judges what came of them.
"""
