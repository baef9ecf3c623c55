"""Which part of an agent forgot, and whether it can still learn."""
