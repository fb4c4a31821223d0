"""Carries out one scenario: steps, expectations, diagnostics, cleanup, outcome."""
