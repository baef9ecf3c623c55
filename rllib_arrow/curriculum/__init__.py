"""Which task is on, and when."""
