"""Policies as StableHLO, by ``jax.export``: for programs with JAX that do not have this package."""

from typing import Any

import jax
import jax.numpy as jnp

from edp.acting.policy import LoadedPolicy
from edp.acting.selection import select_action
from edp.batches import Windows
from edp.errors import UserError
from edp.exporting.plan import Input, Plan, model_of
from edp.policies import Transformer

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


def stablehlo_inputs(plan: Plan) -> list[Input]:
    """As those of the plan, but random numbers are drawn from keys."""
    if isinstance(plan.policy, Transformer):
        return [given._replace(type=given.type.replace("int64", "int32")) for given in plan.inputs]
    about = "random keys: jax.random.key_data(jax.random.split(key, batch))"
    return [plan.inputs[0], Input("key", "uint32", ("batch", 2), about)]


def write_stablehlo(loaded: LoadedPolicy, plan: Plan) -> tuple[bytes, int]:
    """The serialised program, and the version of the calling convention of ``jax.export``."""
    from jax import export

    (batch,) = export.symbolic_shape("batch")
    inputs = [
        jax.ShapeDtypeStruct(tuple(batch if side == "batch" else side for side in given.shape), given.type)
        for given in stablehlo_inputs(plan)
    ]
    exported = export.export(jax.jit(act_function(loaded, plan)), platforms=PLATFORMS)(*inputs)
    try:
        return bytes(exported.serialize()), exported.calling_convention_version
    except ImportError:
        raise UserError("needs the package flatbuffers: pip install 'edp-rl[stablehlo]'") from None


def act_function(loaded: LoadedPolicy, plan: Plan) -> Any:
    """The whole path from inputs to actions, in the units of the data."""
    *models, selection = model_of(loaded)
    policy, critic = jax.tree.map(jnp.asarray, models)
    shift, scale, centre, half, low, high = (array[None] for array in plan.units.arrays)

    def to_units(action: Any) -> Any:
        return jnp.minimum(jnp.maximum(action * half + centre, low), high)

    def act(observation: Any, key: Any) -> Any:
        """One key for each state."""
        keys = jax.random.wrap_key_data(key, impl="threefry2x32")
        select = lambda obs, key: select_action(policy, critic, obs[None], key, selection)[0]  # noqa: E731
        return to_units(jax.vmap(select)((observation - shift) / scale, keys))

    def act_on_history(observations: Any, actions: Any, returns_to_go: Any, steps: Any, mask: Any) -> Any:
        obs, action = (observations - shift[None]) / scale[None], (actions - centre[None]) / half[None]
        return to_units(policy(Windows(obs, action, returns_to_go / policy.scale, steps, mask > 0))[:, -1])

    return act_on_history if isinstance(plan.policy, Transformer) else act
