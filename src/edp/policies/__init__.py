"""Policy classes, and ``POLICIES``: the registry of the options that build them, by name."""

from edp.policies.base import Fit, Policy, PolicyConfig
from edp.policies.deterministic import Deterministic, DeterministicConfig
from edp.policies.diffusion import Diffusion, DiffusionConfig
from edp.policies.gaussian import Gaussian, GaussianConfig
from edp.policies.transformer import Transformer, TransformerConfig

POLICIES: dict[str, type[PolicyConfig]] = {
    "diffusion": DiffusionConfig,
    "gaussian": GaussianConfig,
    "deterministic": DeterministicConfig,
    "transformer": TransformerConfig,
}

__all__ = [
    "POLICIES",
    "Deterministic",
    "DeterministicConfig",
    "Diffusion",
    "DiffusionConfig",
    "Fit",
    "Gaussian",
    "GaussianConfig",
    "Policy",
    "PolicyConfig",
    "Transformer",
    "TransformerConfig",
]
