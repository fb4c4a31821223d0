"""What is wrong in files that people write, beyond what a model can say; before anything runs."""
