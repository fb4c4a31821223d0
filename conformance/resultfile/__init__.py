"""The result file of a run: one model of its lines, written as the run goes and read back.

:mod:`~conformance.resultfile.write` is a reporter; :mod:`~conformance.resultfile.read` gives what a
file says, and distinguishes the ways in which one can be wrong.
"""
