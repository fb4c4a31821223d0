"""Which devices suit which requests, whatever else is allocated."""
