"""The one data structure that everything else passes around."""

from typing import NamedTuple

from jaxtyping import Array, Float, Key

PRNGKey = Key[Array, ""]


class Transitions(NamedTuple):
    """Transitions in rows: a whole data set, or a batch of one."""

    obs: Float[Array, "n obs"]
    action: Float[Array, "n act"]
    reward: Float[Array, " n"]
    next_obs: Float[Array, "n obs"]
    not_done: Float[Array, " n"]  # 0 at a true terminal only, never at a timeout
