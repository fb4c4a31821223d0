"""Judge a target by the reference: admissible, not equal.

Read :mod:`~conformance.compare.judging` first (one allocation, judged by the two questions of
:mod:`~conformance.compare.witness`), then :mod:`~conformance.compare.compare_scenarios`
(a scenario). :mod:`~conformance.compare.conclude` turns a whole run into an exit code.
"""
