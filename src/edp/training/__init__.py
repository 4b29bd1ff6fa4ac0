"""From what the user asked for to a finished run."""
