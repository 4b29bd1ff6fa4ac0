"""Where seeds live: several processes, several devices."""
