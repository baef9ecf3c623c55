"""From text to a finished run: read, check, hand to Ray Tune, show progress."""
