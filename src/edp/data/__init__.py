"""Logs and data sets: formats, checks, units, tasks, and the synthesis of data."""
