"""The functions an expression can call (cel-go's ``stdlib`` and ``ext``, Kubernetes' library)."""
