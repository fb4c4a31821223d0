"""Other schedulers: started, run, and recorded (docs/schedulers.md)."""
