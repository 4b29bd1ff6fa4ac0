"""Options that make a run small."""

LENGTH = ["--steps", "30", "--epoch-steps", "10", "--eval-every", "20", "--episodes", "2"]
NETWORKS = ["--hidden", "16", "--critic-hidden", "16", "--batch-size", "32"]
TINY = [*LENGTH, *NETWORKS, "--policy-target-after", "0", "--calls", "3", "--eas", "2"]
