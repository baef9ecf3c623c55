"""What a run directory holds: its two files, their reader and writer, and frames."""
