"""Decision Transformer: what it sees, what it learns from, and how it acts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edp.algorithms import DT, TD3BC
from edp.batches import Windows
from edp.errors import UserError
from edp.policies import GaussianConfig, TransformerConfig

CONFIG = TransformerConfig(context=4, width=16, layers=2, heads=2, target_return=50.0, return_scale=10.0)


@pytest.fixture(scope="module")
def model():
    return CONFIG.build(3, 2, jax.random.key(0))


@pytest.fixture(scope="module")
def windows():
    rng = np.random.default_rng(0)
    return Windows(
        obs=jnp.asarray(rng.standard_normal((5, 4, 3)), jnp.float32),
        action=jnp.asarray(rng.uniform(-1, 1, (5, 4, 2)), jnp.float32),
        to_go=jnp.asarray(rng.standard_normal((5, 4)), jnp.float32),
        step=jnp.asarray(np.tile([0, 0, 0, 1], (5, 1))),
        mask=jnp.asarray(np.tile([False, False, True, True], (5, 1))),
    )


def test_dt_loss_is_the_squared_error_of_real_steps(model, windows):
    loss, _ = DT().policy_loss(model, windows, jax.random.key(0))
    error = (np.asarray(model(windows)) - np.asarray(windows.action)) ** 2
    assert float(loss) == pytest.approx(error[:, 2:].mean(), rel=1e-5)


def test_actions_depend_on_the_past_alone(model, windows):
    """An action does not depend on later steps, on the action of the same step, or on padding."""
    before = np.asarray(model(windows))
    for name in ("obs", "action", "to_go"):
        column = getattr(windows, name)
        later = np.asarray(model(windows._replace(**{name: column.at[:, 3].add(1.0)})))
        np.testing.assert_allclose(later[:, 2], before[:, 2], atol=1e-6)
        padding = np.asarray(model(windows._replace(**{name: column.at[:, :2].add(1.0)})))
        np.testing.assert_allclose(padding[:, 2:], before[:, 2:], atol=1e-6)
        if name != "action":
            assert np.abs(later[:, 3] - before[:, 3]).max() > 1e-4
    own = np.asarray(model(windows._replace(action=windows.action.at[:, 3].add(1.0))))
    np.testing.assert_allclose(own[:, 3], before[:, 3], atol=1e-6)
    last = np.asarray(model(windows._replace(action=windows.action.at[:, 2].add(1.0))))
    assert np.abs(last[:, 3] - before[:, 3]).max() > 1e-4


def test_acting_step_by_step_equals_one_look_at_the_history(model):
    """Six steps with a context of four: the last four are seen, and the return asked for shrinks by the rewards."""
    rng = np.random.default_rng(1)
    obs, rewards = rng.standard_normal((6, 2, 3)).astype(np.float32), rng.standard_normal((6, 2)).astype(np.float32)
    rewards[0] = 0
    memory, actions = model.memory(2), []
    for step in range(6):
        memory, action = model.step(memory, jnp.asarray(obs[step]), jnp.asarray(rewards[step]), step)
        actions.append(np.asarray(action))
    to_go = 5.0 - np.cumsum(rewards, axis=0) / 10
    taken = np.stack([*actions[:-1], np.zeros((2, 2))])
    columns = (np.swapaxes(column[2:], 0, 1) for column in (obs, taken, to_go))
    steps, mask = np.tile(np.arange(2, 6), (2, 1)), np.ones((2, 4), bool)
    seen = Windows(*(jnp.asarray(column, jnp.float32) for column in columns), jnp.asarray(steps), jnp.asarray(mask))  # pyright: ignore[reportCallIssue]
    np.testing.assert_allclose(actions[-1], np.asarray(model(seen))[:, -1], atol=1e-5)


def test_each_is_refused_with_the_wrong_partner():
    with pytest.raises(UserError, match="use `policy=transformer`"):
        DT().check(GaussianConfig())
    with pytest.raises(UserError, match="only `algo=dt` trains"):
        TD3BC().check(CONFIG)
