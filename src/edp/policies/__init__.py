"""Policy classes, and ``POLICIES``: the registry of the options that build them, by name."""

from edp.policies.base import Fit, Policy, PolicyConfig
from edp.policies.deterministic import Deterministic, DeterministicConfig
from edp.policies.diffusion import Diffusion, DiffusionConfig
from edp.policies.distilled import Distilled, DistilledConfig
from edp.policies.flow import Flow, FlowConfig
from edp.policies.gaussian import Gaussian, GaussianConfig
from edp.policies.meanflow import MeanFlow, MeanFlowConfig
from edp.policies.transformer import Transformer, TransformerConfig

POLICIES: dict[str, type[PolicyConfig]] = {
    "diffusion": DiffusionConfig,
    "flow": FlowConfig,
    "meanflow": MeanFlowConfig,
    "distilled": DistilledConfig,
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
    "Distilled",
    "DistilledConfig",
    "Fit",
    "Flow",
    "FlowConfig",
    "Gaussian",
    "GaussianConfig",
    "MeanFlow",
    "MeanFlowConfig",
    "Policy",
    "PolicyConfig",
    "Transformer",
    "TransformerConfig",
]
