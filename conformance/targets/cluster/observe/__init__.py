"""What is observed beside the API: containers, CDI specs, metrics, logs."""
