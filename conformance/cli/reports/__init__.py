"""Commands about conformance reports and submissions."""
