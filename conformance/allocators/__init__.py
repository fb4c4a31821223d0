"""Judges allocators of others: programs that answer which nodes can have a pod's claims.

Whoever writes the rules of DRA again (a scheduler, an autoscaler, a queue) learns here whether they
are right, without a cluster: a program answers lines of JSON, and the reference judges the answers.
"""
