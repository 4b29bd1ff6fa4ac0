"""The distilled policy of flow Q-learning (FQL, Park et al. 2025): a flow that imitates, and its one-step student."""

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from edp.diffusion import FLOW_SAMPLERS, FlowSampler
from edp.networks import MLP, NoiseNet
from edp.options import option
from edp.policies.base import PLAIN, Control, Fit, Policy, PolicyConfig
from edp.policies.flow import Flow, initial_noise


class Distilled(Policy):
    """mu(s, z): the student acts, and the flow is its teacher in training."""

    student: MLP
    teacher: Flow
    distillation: float = eqx.field(static=True)

    def sample(self, obs: Float[Array, "n obs"], key: PRNGKeyArray, control: Control = PLAIN) -> Float[Array, "n act"]:
        return jnp.clip(self.student_of(obs, initial_noise(obs, self.teacher.act_dim, key, control)), -1, 1)

    def student_of(self, obs: Float[Array, "n obs"], noise: Float[Array, "n act"]) -> Float[Array, "n act"]:
        return self.student(jnp.concatenate([obs, noise], axis=-1))

    def fit(self, obs: Float[Array, "n obs"], action: Float[Array, "n act"], key: PRNGKeyArray) -> Fit:
        """The flow's loss, and alpha · |mu(s, z) - sg(flow(s, z))|², where the flow starts from the same noise z."""
        flow_key, noise_key = jax.random.split(key)
        noise = jax.random.normal(noise_key, action.shape, action.dtype)
        taught = jax.lax.stop_gradient(self.teacher.follow(obs, noise))
        output = self.student_of(obs, noise)
        distance = jnp.mean((output - taught) ** 2, axis=-1)
        bc = self.teacher.fit(obs, action, flow_key).bc + self.distillation * distance
        return Fit(bc, jnp.clip(output, -1, 1), -bc, precision=self.distillation, variances=2.0)


@dataclass(frozen=True)
class DistilledConfig(PolicyConfig):
    """Options of the distilled policy."""

    distillation: float = option(1.0, "weight of the student's squared distance from the flow (FQL's alpha)", low=0.0)
    sampler: str = option("euler", f"sampler of the flow: {', '.join(FLOW_SAMPLERS)} (of second order)")
    calls: int = option(10, "network calls of the flow's sampler, in training", low=1)
    hidden: tuple[int, ...] = option((256, 256, 256), "widths of both networks' hidden layers", low=1, high=65_536)

    can_scale: ClassVar[bool] = False
    has_likelihood: ClassVar[bool] = False

    @property
    def no_entropy(self) -> str:
        return "that of a flow policy is intractable"

    def build(self, obs_dim: int, act_dim: int, key: PRNGKeyArray) -> Distilled:
        student_key, teacher_key = jax.random.split(key)
        teacher = Flow(
            NoiseNet(obs_dim, act_dim, self.hidden, teacher_key), act_dim, FlowSampler(self.sampler, self.calls)
        )
        return Distilled(MLP(obs_dim + act_dim, self.hidden, act_dim, student_key), teacher, self.distillation)
