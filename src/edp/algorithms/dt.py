"""Decision Transformer (Chen et al. 2021): behaviour cloning conditioned on the return to go."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import optax
from jaxtyping import PRNGKeyArray

from edp.algorithms.base import Loss, learning_rate
from edp.algorithms.bc import BC
from edp.batches import Windows
from edp.errors import UserError
from edp.options import option
from edp.policies.base import PolicyConfig
from edp.policies.transformer import Transformer


@dataclass(frozen=True)
class DT(BC):
    """Hyper-parameters and loss of Decision Transformer."""

    weight_decay: float = option(1e-4, "weight decay of AdamW", low=0.0)

    learns_from: ClassVar[str] = "windows"
    default_policy: ClassVar[str] = "transformer"
    defaults: ClassVar[Mapping[str, Any]] = {
        "lr": 1e-4,
        "clip": 0.25,
        "rewards": "raw",  # when it acts, it subtracts the environment's rewards from the target return
    }
    recipe: ClassVar[Mapping[str, Any]] = {"lr": 1e-4}

    def check(self, policy: PolicyConfig) -> None:
        if not policy.reads_histories:
            raise UserError("dt is a model of sequences, and other policies see one state: use `policy=transformer`")

    @property
    def optimiser(self) -> optax.GradientTransformation:
        rate = learning_rate(self.lr, self.lr_warmup, self.lr_decay)
        return optax.chain(optax.clip_by_global_norm(self.clip), optax.adamw(rate, weight_decay=self.weight_decay))

    def policy_loss(self, policy: Transformer, batch: Windows, key: PRNGKeyArray) -> Loss:  # pyright: ignore
        """The mean squared error of the actions, over steps that are not masked out."""
        error = jnp.mean((policy(batch, key) - batch.action) ** 2, axis=-1)
        bc = jnp.sum(error * batch.mask) / jnp.sum(batch.mask)
        return bc, {"bc_loss": bc}
