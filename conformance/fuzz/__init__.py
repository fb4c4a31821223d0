"""Random problems for a real scheduler, judged by the reference, and made small.

`draw/` makes them, :mod:`~conformance.fuzz.placing` puts one on a cluster,
:mod:`~conformance.fuzz.running` does that with many at once and judges what came of them.
"""
