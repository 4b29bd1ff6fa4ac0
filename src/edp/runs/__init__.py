"""Run directories on disk: config, logs of numbers, checkpoints."""
