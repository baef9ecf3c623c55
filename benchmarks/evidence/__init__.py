"""Runs everything the results pages show, and rebuilds them: `make evidence`."""
