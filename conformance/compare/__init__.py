"""Judge a target by the reference: admissible, not equal.

First :mod:`~conformance.compare.judging` (one allocation), then
:mod:`~conformance.compare.observations` (what a scenario saw) and
:mod:`~conformance.compare.compare` (a whole run). :mod:`~conformance.resultfile.read` reads what
a run left behind.
"""
