"""Fitted Q evaluation against values that are known, and as a command."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import edp
from edp.acting import fqe
from edp.acting.actors import Actors
from edp.cli import main
from edp.data.dataset import Dataset
from edp.runs.directory import Run

DISCOUNT = 0.9
OPTIONS = fqe.FQEOptions(fqe_steps=1000, fqe_rows=2000, fqe_batch=128, fqe_discount=DISCOUNT, fqe_penalty=0.0)


@pytest.fixture(autouse=True)
def small_network(monkeypatch):
    """Use a small network, which is enough for these problems."""
    monkeypatch.setattr(fqe, "HIDDEN", (32, 32))


class Line(eqx.Module):
    """The policy a = slope · s."""

    slope: jax.Array

    def act(self, obs, key, control):
        return self.slope[None, None] * obs


def data(rng, reach=1.0, rows=2000):
    """States that do not depend on actions, and a reward of 1 - (a - s)²; episodes of 50 steps that are cut off."""
    obs, next_obs = rng.uniform(-1, 1, (2, rows, 1)).astype(np.float32)
    obs[1:] = next_obs[:-1]
    action = np.clip(rng.uniform(-reach, reach, (rows, 1)), -1, 1).astype(np.float32)
    reward = 1 - (action[:, 0] - obs[:, 0]) ** 2
    ones, episode = np.ones(rows, np.float32), np.arange(rows) // 50
    return Dataset(obs, action, reward.astype(np.float32), next_obs, ones, episode, np.zeros(40), [])


def values(dataset, slopes, options=OPTIONS):
    problem = fqe.prepare_problem(dataset, options)
    return fqe.value_policies(Actors(Line(jnp.array(slopes)), None), problem, options)


def test_known_values(rng):
    """E[1 - (slope - 1)² s²] / (1 - discount), with E[s²] = 1/3."""
    slopes = np.array([1.0, 0.0, -1.0])
    true = (1 - (slopes - 1) ** 2 / 3) / (1 - DISCOUNT)
    np.testing.assert_allclose(values(data(rng), slopes), true, rtol=0.1, atol=0.5)


def test_terminals_end_the_return(rng):
    dataset = data(rng)
    ended = dataset._replace(not_done=np.zeros_like(dataset.not_done), episode=np.arange(len(dataset.obs)))
    np.testing.assert_allclose(values(ended, [1.0, 0.0]), [1.0, 2 / 3], atol=0.15)


def test_far_from_the_data_costs(rng):
    """The data's actions reach 0.2. The penalty lowers the value of a policy whose actions reach 1."""
    near, far = values(data(rng, reach=0.2), [0.1, 1.0], OPTIONS)
    careful = fqe.FQEOptions(**{**vars(OPTIONS), "fqe_penalty": 1.0})
    near_again, far_again = values(data(rng, reach=0.2), [0.1, 1.0], careful)
    assert 0 <= near - near_again < 0.25 * near
    assert far_again < far - 1
    assert far_again < near_again


def test_nearest_is_the_nearest(rng):
    points, among = rng.standard_normal((1203, 3)), rng.standard_normal((700, 3))
    apart = np.sort(np.linalg.norm(points[:, None] - among[None], axis=-1), axis=1)
    for rank in (0, 1):
        found = fqe.nearest_distance(jnp.asarray(points, jnp.float32), jnp.asarray(among, jnp.float32), rank)
        np.testing.assert_allclose(found, apart[:, rank], atol=1e-3)


@pytest.fixture(scope="module")
def folder(hopper_file, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "r"
    words = ["train", "hopper-medium-v2", "--data", str(hopper_file), "--out", str(out), "--calls", "3", "--eas", "2"]
    small = ["--steps", "30", "--epoch-steps", "10", "--eval-every", "10", "--episodes", "1", "--hidden", "16"]
    assert main([*words, *small, "--critic-hidden", "16", "--seeds", "2", "--quiet"]) == 0
    return out


def offline(folder):
    return [json.loads(line) for line in (folder / "offline.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_command_values_checkpoints_and_chooses(folder, capsys, fails):
    assert "edp eval" in fails("eval", folder, "--checkpoint", "fqe")
    assert main(["eval", str(folder), "--offline", "--fqe-steps", "20", "--fqe-batch", "32"]) == 0
    shown = capsys.readouterr().out
    assert "Rank correlation of FQE with the score" in shown
    rows = offline(folder)[-3:]
    assert [row["step"] for row in rows] == [10, 20, 30]
    assert np.isfinite([row["values"] for row in rows]).all()
    best = max(rows, key=lambda row: np.mean(row["values"]))["step"]
    assert f"best by FQE: step {best}" in shown
    assert main(["eval", str(folder), "--checkpoint", "fqe"]) == 0
    assert Run.open(folder).evaluations()[-1]["step"] == best
    np.testing.assert_array_equal(
        edp.load_policy(folder, checkpoint="fqe").act(np.ones(11)),
        edp.load_policy(folder, checkpoint=best).act(np.ones(11)),
    )


def test_the_same_again_gives_the_same(folder):
    assert main(["eval", str(folder), "--offline", "--fqe-steps", "20", "--fqe-batch", "32"]) == 0
    first = offline(folder)
    assert main(["eval", str(folder), "--offline", "--fqe-steps", "20", "--fqe-batch", "32"]) == 0
    assert offline(folder)[-3:] == first[-3:]


def test_refusals(folder, hopper_file, tmp_path, fails):
    assert "is for --offline" in fails("eval", folder, "--fqe-steps", "5")
    assert "is for --offline" in fails("eval", folder, "--data", hopper_file)
    assert "has none" in fails("eval", folder, "--offline", "--video", tmp_path / "x.gif")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["data_sha256"]
    other = tmp_path / "other.hdf5"
    other.write_bytes(b"no")
    assert str(other) in fails("eval", folder, "--offline", "--data", other)
