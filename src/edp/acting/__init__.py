"""Trained policies in use: selection of actions, rollouts, evaluation, validation, off-policy evaluation, videos."""
