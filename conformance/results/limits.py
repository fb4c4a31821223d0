"""Limits of what a result file tells, for those who read options before any result."""

MAX_SHARDS = 9999
"""The most parts into which a run can be divided (``--shard``)."""
