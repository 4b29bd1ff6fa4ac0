"""Tables and pictures from run directories. Nothing here needs JAX, an environment or the data."""
