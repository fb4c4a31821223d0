"""Scheduling decisions of a cluster, and the state that each was made from."""
