"""Making data: rollouts of policies, look-alikes of D4RL's files, recordings."""
