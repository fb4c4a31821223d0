"""Third-party drivers: built, checked, run on a local cluster, and recorded."""
