"""Defects of a DRA driver, as the kubelet sees it."""
