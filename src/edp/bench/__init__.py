"""How fast training and acting run, against the rate of the machine's matrix products."""
