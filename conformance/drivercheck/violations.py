"""How a check ends that does not pass."""

from __future__ import annotations


class ViolationError(AssertionError):
    """The driver broke the rule: what was expected, and what was found."""


class UnanswerableError(Exception):
    """The check cannot be made with this driver, and why: it is skipped."""


class NotOfferedError(UnanswerableError):
    """The rule is about something that a driver need not offer, and this one does not."""


class SilenceError(ViolationError):
    """The driver did not answer in the time that the kubelet gives it."""
