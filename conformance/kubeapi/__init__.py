"""One way to talk to an API server: connection, discovery, informers.

Everything in the suite that asks an API server something does it here: the sources of clusters
before a run, the cluster target during one, ``cleanup`` after it.
"""
