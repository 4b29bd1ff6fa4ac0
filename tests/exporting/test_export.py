"""From a run to a file with its contract, or to one clear line."""

import json
import shutil
import sys

import equinox as eqx
import jax
import numpy as np
import pytest

import edp
from edp.errors import UserError
from edp.exporting import c_writer, graph
from edp.exporting.export import run_onnx
from edp.exporting.plan import make_plan
from edp.policies import Deterministic
from edp.runs.agreement import recorded_config
from edp.runs.checkpoints import Checkpoints
from edp.runs.directory import Run
from edp.runs.load import load_checkpoint
from support.own_data import COLUMNS, write_csv
from support.tiny_policy import ACT, OBS, tiny_policy

FEW = {"steps": 2, "epoch_steps": 2, "eval_every": 2, "batch_size": 8, "hidden": (8,), "calls": 6, "sampler": "dpm++"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run on a table whose columns have names, with two seeds."""
    home = tmp_path_factory.mktemp("own")
    table, ranges = write_csv(home / "rooms.csv"), {"action_low": (18.0, 0.0), "action_high": (75.0, 100.0)}
    options = {"algo": "bc", "policy": "diffusion", "seeds": 2, "eas": 1, "normalise": "standard"}
    edp.fit(table, home / "run", columns=COLUMNS, **FEW, **ranges, **options)
    return home / "run"


@pytest.fixture(scope="module")
def tiny():
    return tiny_policy(sampler="dpm++", calls=6, eas=3)


def test_a_run_becomes_a_model_with_a_contract(folder, tmp_path):
    done = edp.export(folder, tmp_path / "policy.onnx", seed=1)
    contract = json.loads(done.contract_path.read_text(encoding="utf-8"))
    assert contract == done.contract
    assert (contract["run"], contract["seed"], contract["step"]) == ("run", 1, 2)
    assert (contract["task"], contract["algorithm"], contract["policy"]) == ("rooms.csv", "bc", "diffusion")
    assert [entry["name"] for entry in contract["observations"]] == list(COLUMNS["observation_columns"])
    assert [tuple(entry.values()) for entry in contract["actions"]] == [
        ("flow_c", 18.0, 75.0),
        ("valve_percent", 0.0, 100.0),
    ]
    assert contract["version"] == edp.__version__
    assert contract["sampler"]["calls"] == 6
    assert contract["check"]["observations"] == "of the data"
    assert 0 < contract["check"]["greatest_difference"] < 1e-5
    example = contract["example"]
    inputs = {given["name"]: np.array(example[given["name"]], given["type"]) for given in contract["inputs"]}
    action = run_onnx(done.path.read_bytes(), inputs)
    np.testing.assert_allclose(action, example["action"], rtol=1e-6)
    assert example["observation"][0] == pytest.approx([float(x) for x in first_row(folder)], rel=1e-6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["policy.json", "policy.onnx"]


def test_the_control_loop_is_in_the_contract(folder, tmp_path):
    done = edp.export(folder, tmp_path / "plain.onnx")
    nothing = {"max_change": None, "deadline_ms": None, "fallback": None}
    assert done.contract["control"] == {"outside": "warn", "margin": 0.1, **nothing}
    options = {"outside": "hold", "max_change": {"flow_c": 2}, "deadline_ms": 20, "fallback": [30, 0]}
    done = edp.export(folder, tmp_path / "policy.onnx", **options)
    wanted = {"outside": "hold", "margin": 0.1, "max_change": [2, None], "deadline_ms": 20, "fallback": [30, 0]}
    assert done.contract["control"] == wanted == json.loads(done.contract_path.read_text())["control"]
    with pytest.raises(UserError, match="`fallback` is 5 for 'flow_c', which is not within 18 to 75"):
        edp.export(folder, tmp_path / "bad.onnx", **options | {"fallback": [5, 0]})
    assert not (tmp_path / "bad.onnx").exists()


def first_row(folder):
    """The first observation of the table."""
    return (folder.parent / "rooms.csv").read_text().splitlines()[1].split(",")[1:3]


def test_the_model_knows_what_it_is(folder, tmp_path):
    import onnxruntime

    done = edp.export(folder, tmp_path / "policy.onnx")
    known = onnxruntime.InferenceSession(done.path).get_modelmeta().custom_metadata_map
    assert json.loads(known["edp.observations"]) == done.contract["observations"]
    assert json.loads(known["edp.actions"]) == done.contract["actions"]
    assert known["edp.parameters_sha256"] == done.contract["parameters_sha256"]
    assert json.loads(known["edp.check"])["greatest_difference"] < 1e-5
    assert (known["edp.version"], known["edp.run"]) == (edp.__version__, "run")
    other = edp.export(folder, tmp_path / "other.onnx", seed=1)
    assert other.contract["parameters_sha256"] != done.contract["parameters_sha256"]


def test_data_that_is_gone(folder, tmp_path):
    moved = shutil.copytree(folder, tmp_path / "run")
    config = json.loads((moved / "config.json").read_text())
    (moved / "config.json").write_text(json.dumps(config | {"file": str(tmp_path / "gone.csv")}))
    done = edp.export(moved, tmp_path / "policy.onnx", act_calls=4)
    assert done.contract["check"]["observations"] == "within the data's ranges"
    assert done.contract["sampler"]["calls"] == 4


STABLEHLO = {
    "diffusion": {"sampler": "dpm++", "calls": 6},
    "flow by midpoints, the best": {"policy": "flow", "sampler": "midpoint", "eas": 3, "eas_temperature": 0.0},
    "mean flow": {"policy": "meanflow"},
    "distilled": {"policy": "distilled"},
}


@pytest.mark.parametrize("name", STABLEHLO)
def test_stablehlo_gives_the_same_action_for_the_same_key(name, tmp_path):
    from jax import export as jax_export

    tiny = tiny_policy(**{"eas": 1} | STABLEHLO[name])
    done = edp.export(tiny, tmp_path / "policy.stablehlo")
    assert done.contract["calling_convention_version"] > 0
    loaded = jax_export.deserialize(bytearray(done.path.read_bytes()))
    obs = np.array(done.contract["example"]["observation"] * 3, np.float32)
    keys = jax.random.split(jax.random.fold_in(jax.random.key(0), 0), (1, 3))[0]  # those of LoadedPolicy
    keys = jax.random.key_data(jax.vmap(jax.random.fold_in, (0, None))(keys, 0))
    np.testing.assert_allclose(loaded.call(obs, keys), tiny.act(obs), rtol=1e-4, atol=1e-3)


def test_stablehlo_of_histories(tmp_path):
    policy = tiny_policy(algo="dt", policy="transformer", width=8, layers=1, context=2, target_return=3.0)
    done = edp.export(policy, tmp_path / "policy.stablehlo")
    assert [given["name"] for given in done.contract["inputs"]][:2] == ["observations", "actions"]
    assert done.contract["history"] == {"context": 2, "target_return": 3.0}


def test_c(tiny, tmp_path):
    done = edp.export(tiny, tmp_path / "pump 1.c")
    text = done.path.read_text(encoding="ascii")
    assert "int pump_1_act(const float *observation" in text
    assert [given["shape"] for given in done.contract["inputs"]] == [[OBS], [3, 1, ACT], [3]]
    assert np.array(done.contract["example"]["action"]).shape == (ACT,)
    assert done.contract["run"] is None


def test_random_numbers_inside_leave_one_input(tiny, tmp_path):
    done = edp.export(tiny, tmp_path / "policy.onnx", random="inside", random_seed=5)
    assert [given["name"] for given in done.contract["inputs"]] == ["observation"]
    assert done.contract["example"] is None
    action = run_onnx(done.path.read_bytes(), {"observation": np.zeros((2, OBS), np.float32)})
    assert action.shape == (2, ACT)


def test_a_wrong_model_is_not_written(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(graph.Graph, "mish_of_negative", lambda self, z: self.add("Relu", self.add("Neg", z)))
    with pytest.raises(UserError, match=r"differs from the JAX policy by up to .* nothing was written$"):
        edp.export(tiny, tmp_path / "policy.onnx")
    monkeypatch.setattr(c_writer, "chain_values", lambda chain, right=c_writer.chain_values: wrong(right(chain)))
    with pytest.raises(UserError, match="nothing was written"):
        edp.export(tiny, tmp_path / "policy.c")
    assert not list(tmp_path.iterdir())


def wrong(values):
    return values | {"predicts_data": not values["predicts_data"]}


def test_files_that_exist_are_kept(tiny, tmp_path):
    (tmp_path / "policy.onnx").write_text("mine")
    with pytest.raises(UserError, match=r"policy.onnx: already exists; .* `overwrite`"):
        edp.export(tiny, tmp_path / "policy.onnx")
    (tmp_path / "b.json").write_text("[]")
    with pytest.raises(UserError, match=r"b.json: already exists"):
        edp.export(tiny, tmp_path / "b.c")
    assert (tmp_path / "policy.onnx").read_text() == "mine"
    edp.export(tiny, tmp_path / "policy.onnx", overwrite=True)
    with pytest.raises(UserError, match=r"policy.json: is the contract of policy.onnx; give policy.c another name"):
        edp.export(tiny, tmp_path / "policy.c", overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.json", "policy.json", "policy.onnx"]


@pytest.mark.parametrize(
    ("file", "options", "message"),
    [
        (
            "policy.txt",
            {},
            r"its suffix names no format \(use .onnx, .stablehlo, .c, or give the format with `format`\)",
        ),
        ("policy.onnx", {"format": "onx"}, "unknown format 'onx': did you mean 'onnx'"),
        ("policy.json", {"format": "c"}, "contract has the suffix .json"),
        ("policy.onnx", {"random": "outside"}, "unknown choice of `random` 'outside': did you mean 'inside'"),
        ("policy.c", {"random": "inside"}, "`random` and `random_seed` are for the format onnx only"),
        ("policy.onnx", {"eas": 5}, "give options of acting to load_policy"),
        ("", {"format": "onnx"}, "is a directory"),
    ],
)
def test_wrong_options(tiny, tmp_path, file, options, message):
    with pytest.raises(UserError, match=message):
        edp.export(tiny, tmp_path / file, **options)
    assert not list(tmp_path.iterdir())


def test_any_suffix_with_a_format(tiny, tmp_path):
    assert edp.export(tiny, tmp_path / "policy.h", format="c").contract["format"] == "c"


def test_places_that_cannot_be_written(tiny, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write here"):
        edp.export(tiny, tmp_path / "file" / "policy.c")


@pytest.mark.parametrize("place", ["policies", "critics"])
def test_parameters_that_are_not_finite(tmp_path, place):
    policy = tiny_policy(sampler="dpm++", calls=6, eas=3)
    models = getattr(policy.actors, place)
    *others, last = jax.tree.leaves(models)
    bad = jax.tree.unflatten(jax.tree.structure(models), [*others, last.at[0, 0].set(np.nan)])
    policy._actors = policy.actors._replace(**{place: bad})
    with pytest.raises(UserError, match="parameters have NaN or Inf"):
        edp.export(policy, tmp_path / "policy.onnx")
    assert not list(tmp_path.iterdir())


class Other(Deterministic):
    """A policy of the user's own class."""


def test_policies_without_an_exporter(tmp_path):
    policy = tiny_policy(policy="deterministic")
    policy._actors = policy.actors._replace(policies=Other(policy.actors.policies.net))
    with pytest.raises(UserError, match="class Other has no exporter"):
        edp.export(policy, tmp_path / "policy.onnx")
    net = policy.actors.policies.net
    one_layer = eqx.tree_at(lambda net: net.layers, net, net.layers[:1])
    policy._actors = policy.actors._replace(policies=Deterministic(one_layer))
    with pytest.raises(UserError, match="without hidden layers"):
        make_plan(policy)


@pytest.mark.parametrize(
    ("missing", "file", "extra"), [("onnx", "policy.onnx", "onnx"), ("onnxruntime", "a.onnx", "onnx")]
)
def test_packages_that_are_missing(tiny, tmp_path, monkeypatch, missing, file, extra):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UserError, match=rf"pip install 'edp-rl\[{extra}\]'"):
        edp.export(tiny, tmp_path / file)
    assert not list(tmp_path.iterdir())


def test_a_run_that_cannot_act(folder, tmp_path, fails):
    run, out = shutil.copytree(folder, tmp_path / "run"), tmp_path / "policy.onnx"
    assert "has seeds 0 to 1, not 7" in fails("export", run, out, "--seed", 7)
    assert "no checkpoint of step 5" in fails("export", run, out, "--checkpoint", 5)
    assert "`eas`" not in (said := fails("export", run, out, "--eas", 4)) and "--eas chooses among actions" in said
    shutil.rmtree(run / "checkpoints")
    assert fails("export", run, out).endswith("no checkpoint in it yet")
    assert "not a run directory" in fails("export", tmp_path, out)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_seed_that_failed(folder, tmp_path, fails):
    run = shutil.copytree(folder, tmp_path / "run")
    opened = Run.open(run)
    spec, found = load_checkpoint(opened)
    saved = Checkpoints(opened.checkpoints, total=10, config=recorded_config(spec, opened.config))
    saved.save(found.step, found.tree, {"failed": {"1": "NaN in the losses"}})
    saved.finish()
    saved.close()
    assert "seed 1 failed in training (NaN in the losses)" in fails("export", run, tmp_path / "a.onnx", "--seed", 1)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
