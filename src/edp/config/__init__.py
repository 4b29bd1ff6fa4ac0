"""What the user asked for, the default of every option, and the specification of a run."""
