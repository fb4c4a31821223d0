"""What every house of this repository stands on, and what is not about Kubernetes.

Kinds of errors with their exit codes, text from elsewhere, files, locks, folders of the user.
"""
