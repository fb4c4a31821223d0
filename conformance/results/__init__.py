"""What happened in a run: its events, and the result file in which they are kept.

Nothing here runs a scenario. :mod:`~conformance.results.events` is what happens in a run, as frozen
values; :mod:`~conformance.results.write` is the reporter that writes each to a line of the result
file, :mod:`~conformance.results.read` gives what a file says, and distinguishes the ways in which
one can be wrong. :mod:`~conformance.results.merge` puts the parts of a sharded run together, and
:mod:`~conformance.results.knownissues` says which failures are known.
"""
