"""Judge a target by the reference: admissible, not equal.

First :mod:`~conformance.compare.verdicts` (one allocation), then
:mod:`~conformance.compare.observations` (what a scenario saw) and
:mod:`~conformance.compare.compare` (a whole run). :mod:`~conformance.compare.results` reads what
a run left behind.
"""
