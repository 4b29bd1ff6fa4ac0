"""Damage that must not pass silently: changed configs and metadata, lost rows, odd rows."""

import json
import random
import shutil

import numpy as np
import pytest

import edp
from edp.acting.actors import Actors
from edp.acting.policy import LoadedPolicy
from edp.cli import main
from edp.errors import UserError
from edp.runs import load
from edp.runs.directory import Run
from edp.runs.logs import find_lost_rows
from support.small_run import EPOCH, STEPS, assert_same

FLIPS = 40


def resume(folder, *more):
    return main(["train", "--resume", str(folder), "--quiet", *map(str, more)])


def lines(path):
    return path.read_text(encoding="utf-8").splitlines(keepends=True)


def change_config(folder, change):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    change(config)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def change_about(folder, step, change):
    path = folder / "checkpoints" / str(step) / "about" / "metadata"
    about = json.loads(path.read_text(encoding="utf-8"))
    change(about)
    path.write_text(json.dumps(about), encoding="utf-8")


def set_value(part, name, value):
    return lambda config: config[part].__setitem__(name, value)


class TestConfig:
    @pytest.mark.parametrize(
        "part, name, value",
        [
            ("units", "low", [-1.0, -1.0, -1.5]),
            ("units", "obs_shift", [0.0] * 10 + [0.5]),
            ("policy", "diffusion_steps", 999),
            ("evaluation", "eas", 3),
            ("algorithm", "discount", 0.9),
            ("training", "seed", 1),
            ("data", "rewards", "unit"),
            ("signals", "high", [9.0] * 11),
        ],
    )
    def test_a_value_that_was_changed_is_named(self, part, name, value, copy, fails):
        change_config(copy, set_value(part, name, value))
        for words in (["eval", copy], ["train", "--resume", copy, "--steps", STEPS + EPOCH]):
            said = fails(*words)
            assert "config.json: changed or damaged after the checkpoint of step 400 was written" in said
            assert f"({part}.{name}" in said
        with pytest.raises(UserError, match="changed or damaged"):
            edp.load_policy(copy)

    def test_flipped_bits_in_the_units(self, copy):
        """Each gives the same policy, or an error."""
        path, rng = copy / "config.json", random.Random(0)
        start = path.read_bytes()
        units, obs = Run.open(copy).config["units"], np.zeros(11)
        first, end = start.index(b'"units"'), start.index(b'"own_task"')
        good = edp.load_policy(copy).act(obs)
        for _ in range(FLIPS):
            content = bytearray(start)
            content[rng.randrange(first, end)] ^= 1 << rng.randrange(8)
            path.write_bytes(content)
            try:
                run = Run.open(copy)
                load.load_checkpoint(run)
                assert load.read_spec(run).units.to_json() == units
            except UserError as error:
                assert len(str(error).splitlines()) == 1
        path.write_bytes(start)
        np.testing.assert_array_equal(edp.load_policy(copy).act(obs), good)

    def test_what_may_change(self, copy, hopper_file, tmp_path):
        """More steps, other versions, another place of the data; earlier checkpoints are still loaded."""
        moved = shutil.copy(hopper_file, tmp_path / "moved.hdf5")
        change_config(copy, lambda config: config.update(python="3.0", device="1 × gpu", file="nowhere"))
        assert resume(copy, "--steps", STEPS + EPOCH, "--data", moved) == 0
        edp.load_policy(copy, checkpoint=STEPS)

    def test_another_hash_of_the_data(self, copy, fails):
        change_config(copy, lambda config: config.pop("data_sha256"))
        assert "(data_sha256 is null, and was" in fails("train", "--resume", copy, "--steps", STEPS + EPOCH)


class TestMetadata:
    @pytest.mark.parametrize(
        "change",
        [
            lambda about: about.update(failed={"0": "made up"}),
            lambda about: about.update(about_sha256="0" * 64),
            lambda about: about.update(abouu_sha256=about.pop("about_sha256")),
            lambda about: about["config"]["units"].update(low=[-2.0] * 3),
            lambda about: about["logs"]["metrics.jsonl"].update(rows=3),
        ],
    )
    def test_that_was_changed_is_damage(self, change, copy):
        change_about(copy, STEPS, change)
        with pytest.warns(UserWarning, match="its metadata is not what was saved"):
            edp.load_policy(copy)
        assert load.load_checkpoint(Run.open(copy))[1].step == STEPS - EPOCH

    def test_a_checkpoint_under_another_name(self, copy, fails):
        (copy / "checkpoints" / str(STEPS)).rename(copy / "checkpoints" / "500")
        assert "the checkpoint of step 400 under another name" in fails("eval", copy, "--checkpoint", 500)

    def test_older_checkpoints_have_neither_digest_nor_config(self, whole, copy):
        for entry in (copy / "checkpoints").iterdir():
            change_about(copy, entry.name, lambda about: [about.pop(n) for n in list(about) if n not in OLD])
        shutil.rmtree(copy / "checkpoints" / str(STEPS))
        Run(copy).set_status("stopped", STEPS - EPOCH)
        edp.load_policy(copy)
        assert resume(copy) == 0
        assert_same(copy, whole)


OLD = ("failed", "last_good", "sha256")


def test_actions_are_finite_or_an_error(copy):
    import jax

    spec, found = load.load_checkpoint(Run.open(copy))
    actors = Actors.from_states(spec, spec.evaluation, jax.tree.map(lambda leaf: leaf[:1], found.tree))
    actors = actors._replace(policies=jax.tree.map(lambda leaf: leaf * np.float32(np.nan), actors.policies))
    policy = LoadedPolicy(spec, actors, spec.evaluation, draws=0)
    with pytest.raises(UserError, match="the policy's action is NaN or Inf"):
        policy.act(np.zeros(11))


class TestLostRows:
    """A run that is resumed makes lost rows again, if it has a checkpoint before them."""

    def harm(self, path, how):
        rows = lines(path)
        late, early = len(rows) - 1, 0
        if how == "tail":
            rows = [*rows[:-1], rows[-1][:20]]
        elif how == "all":
            rows = []
        elif how == "changed":
            rows[late] = rows[late].replace("0.", "1.", 1)
        else:
            rows[late if how == "late" else early] = "garbage\n"
        path.write_text("".join(rows), encoding="utf-8")

    @pytest.mark.parametrize("name", ["metrics.jsonl", "evaluations.jsonl"])
    @pytest.mark.parametrize("how", ["tail", "late", "changed"])
    def test_are_made_again(self, name, how, whole, copy, capsys):
        self.harm(copy / name, how)
        assert resume(copy) == 0
        said = capsys.readouterr().err
        assert f"{name}: " in said
        assert "so training goes on from step" in said
        assert_same(copy, whole)
        assert find_lost_rows(Run.open(copy)).notes == ()

    def test_that_no_checkpoint_is_before_are_told(self, copy, capsys):
        path = copy / "metrics.jsonl"
        path.write_text("".join(lines(path)[1:]), encoding="utf-8")
        assert resume(copy, "--steps", STEPS + EPOCH) == 0
        assert "1 of its 20 rows up to step 400 are missing, and cannot be made again" in capsys.readouterr().err

    def test_are_told_in_reports_and_lists(self, copy, tmp_path, capsys):
        path = copy / "evaluations.jsonl"
        path.write_text("".join(lines(path)[1:]), encoding="utf-8")
        text = "evaluations.jsonl: 1 of its 4 rows up to step 400 are missing"
        assert main(["runs", str(copy)]) == 0
        assert text in capsys.readouterr().err
        assert main(["report", str(copy), "--out", str(tmp_path / "r.html")]) == 0
        assert text in (tmp_path / "r.html").read_text(encoding="utf-8")
        with pytest.warns(UserWarning, match="rows up to step 400 are missing"):
            edp.load_policy(copy, checkpoint="best")


class TestOddRows:
    ROWS = '{"step": 400}\n{"step": 400, "scores": "many", "metrics": [], "steps_per_second": "fast"}\n'

    @pytest.mark.parametrize("name", ["metrics.jsonl", "evaluations.jsonl", "times.jsonl", "validations.jsonl"])
    def test_are_left_out_with_a_note(self, name, whole, copy, tmp_path, capsys):
        with open(copy / name, "a", encoding="utf-8") as file:
            file.write(self.ROWS)
        count = 1 if name == "times.jsonl" else 2  # a row of times needs nothing but a step
        for words in (
            ["eval", copy, "--episodes", 1],
            ["eval", copy, "--episodes", 1, "--checkpoint", "best"],
            ["train", "--resume", copy, "--steps", STEPS + EPOCH, "--quiet"],
        ):
            assert main([str(word) for word in words]) == 0
            notes = [line for line in capsys.readouterr().err.splitlines() if "cannot be read" in line]
            assert len(notes) == 1
            assert f"{name}: {count} of " in notes[0]
        for words in (["compare", copy, whole], ["runs", copy], ["report", copy, "--out", tmp_path / "r.html"]):
            assert main([str(word) for word in words]) == 0

    @pytest.mark.parametrize("name", ["metrics.jsonl", "evaluations.jsonl"])
    def test_are_told_by_reports(self, name, copy, whole, tmp_path, capsys):
        with open(copy / name, "a", encoding="utf-8") as file:
            file.write(self.ROWS)
        assert main(["report", str(copy), "--out", str(tmp_path / "r.html")]) == 0
        assert f"lines of {name} cannot be read" in (tmp_path / "r.html").read_text(encoding="utf-8")
        for words in (["compare", copy, whole], ["runs", copy]):
            assert main([str(word) for word in words]) == 0
            said = capsys.readouterr().err
            assert (f"lines of {name} cannot be read" in said) == (name == "evaluations.jsonl"), said


def test_rows_are_on_the_disk_before_the_checkpoint_that_counts_on_them(hopper_file, tmp_path, monkeypatch):
    import os

    from edp.runs.checkpoints import Checkpoints
    from support.small_run import train

    synced, sizes, save, sync = {}, [], Checkpoints.save, os.fsync

    def synchronise(handle):
        synced[os.fstat(handle).st_ino] = os.fstat(handle).st_size
        sync(handle)

    def saved(self, step, tree, about=None):
        for name in ("metrics.jsonl", "evaluations.jsonl"):
            path = self.folder.parent / name
            if path.exists():
                sizes.append((path.stat().st_size, synced.get(path.stat().st_ino)))
        save(self, step, tree, about)

    monkeypatch.setattr("os.fsync", synchronise)
    monkeypatch.setattr(Checkpoints, "save", saved)
    assert main([str(word) for word in train(hopper_file, tmp_path / "r", "--steps", 100, "--quiet")]) == 0
    assert len(sizes) == 6
    assert all(size == on_disk for size, on_disk in sizes)
