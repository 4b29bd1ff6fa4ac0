"""Seeds on several devices and in several processes."""
