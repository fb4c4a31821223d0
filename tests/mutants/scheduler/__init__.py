"""Defects of the scheduler, the choice of devices aside."""
