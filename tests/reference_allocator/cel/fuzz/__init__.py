"""Random questions for the real CEL environment and ours, and what may differ in the answers."""
