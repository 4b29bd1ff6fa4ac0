"""Training: from the user's options to a finished run."""
