"""Other schedulers: started, run, and recorded (ci/schedulers/results)."""
