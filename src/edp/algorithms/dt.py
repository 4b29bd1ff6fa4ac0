"""Decision Transformer (Chen et al. 2021): behaviour cloning that is told what return is to come."""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import optax
from jaxtyping import Array

from edp.algorithms.base import Metrics
from edp.algorithms.bc import BC
from edp.batches import Windows
from edp.errors import UserError
from edp.options import option
from edp.policies.base import PolicyConfig
from edp.policies.transformer import Transformer


@dataclass(frozen=True)
class DT(BC):
    weight_decay: float = option(1e-4, "how fast weights shrink (AdamW)", low=0.0)

    learns_from: ClassVar[str] = "windows"

    def check(self, policy: PolicyConfig) -> None:
        if not policy.reads_histories:
            raise UserError("dt is a model of sequences, and other policies see one state: use --policy transformer")

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return optax.chain(optax.clip_by_global_norm(self.clip), optax.adamw(self.lr, weight_decay=self.weight_decay))

    def policy_loss(self, policy: Transformer, batch: Windows, key) -> tuple[Array, Metrics]:  # pyright: ignore
        """The squared error of the actions, over steps that are really there."""
        del key
        error = jnp.mean((policy(batch) - batch.action) ** 2, axis=-1)
        bc = jnp.sum(error * batch.mask) / jnp.sum(batch.mask)
        return bc, {"bc_loss": bc}
