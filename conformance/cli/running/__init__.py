"""Commands that run scenarios and write the reports of a run."""
