"""Efficient diffusion policies for offline reinforcement learning."""
