"""Sweeps: many runs over a space of options, in this process or on a Ray cluster."""
