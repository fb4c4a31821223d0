"""Finds out what is wrong with which GPU, and tells the kubelet and the scheduler."""
