"""Policy classes behind one protocol, and the options that build them by name."""

from edp.policies.base import Fit, Policy, PolicyConfig
from edp.policies.deterministic import Deterministic, DeterministicConfig
from edp.policies.diffusion import Diffusion, DiffusionConfig

POLICIES = {"diffusion": DiffusionConfig, "deterministic": DeterministicConfig}

__all__ = [
    "POLICIES",
    "Deterministic",
    "DeterministicConfig",
    "Diffusion",
    "DiffusionConfig",
    "Fit",
    "Policy",
    "PolicyConfig",
]
