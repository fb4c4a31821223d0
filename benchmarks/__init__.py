"""Measurements of the suite and of its parts, as ratios against peers in the same run."""
