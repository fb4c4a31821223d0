"""From an allocated ResourceClaim to a prepared one, and back; what is remembered of it."""
