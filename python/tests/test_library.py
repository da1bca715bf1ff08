"""Policies, simulator, records and the package's own words."""
import ast
import doctest
import importlib
import pathlib
import subprocess
import sys

import numpy
import pytest

import dynamix
import dynamix.simulator
from dynamix import _core
from dynamix._policy import make_settings


@pytest.mark.parametrize("name", ["dynamix._policy", "dynamix.simulator", "dynamix.torch"])
def test_examples_in_docstrings_are_true(name):
    failures, tried = doctest.testmod(importlib.import_module(name))
    assert failures == 0
    assert tried > 0 or name == "dynamix.torch"


def test_a_policy_decides_on_arrays():
    policy = dynamix.Policy("default", min_batch=4)
    batches = numpy.array([32, 32, 32])
    for _ in range(5):
        batches = policy.decide(batches, compute_ms=batches * [1.0, 1.0, 4.0], iteration_ms=140.0,
                                wait_ms=0.0, noise_scale=200.0, loss=1.0,
                                host={"cpu_use": 0.9}, network={"delivery_mbps": [90.0, 90.0, 80.0]})
    assert batches[2] < batches[0]


def test_fields_that_do_not_exist_are_refused():
    with pytest.raises(dynamix.InputError, match="warp"):
        dynamix.Policy("static").decide([8, 8], warp=3)
    round = dynamix.Round(0, _core.JobSettings(), [])
    with pytest.raises(dynamix.InputError, match="field = warp"):
        round.numbers("warp")


def test_numbers_that_make_no_round_are_refused(tmp_path):
    for batches, measured, sentence in (([], {}, "batches = "), ([8, "x"], {}, "batches = x"), ([0, 8], {}, "batches = 0"),
                                        ([8, 8], {"compute_ms": [1, 2, 3]}, "compute_ms = "),
                                        ([8, 8], {"compute_ms": "x"}, "compute_ms = x")):
        with pytest.raises(dynamix.InputError, match=sentence):
            dynamix.Policy("balanced").decide(batches, **measured)
    policy = dynamix.Policy("balanced")
    policy.decide([8, 8], compute_ms=1.0)
    with pytest.raises(dynamix.InputError, match="2 sizes, one per worker"):
        policy.decide([8, 8, 8], compute_ms=1.0)
    with pytest.raises(dynamix.InputError, match="num_envs = x"):
        dynamix.simulator.VectorEnv("x")
    with pytest.raises(dynamix.InputError, match="policies = "):
        dynamix.simulator.compare([])
    for folders in ([], [tmp_path]):
        with pytest.raises(dynamix.InputError):
            dynamix.comparison(folders)


def test_windows_of_all_ranks_make_the_entries_of_a_round():
    """Worked by hand. Rank 1 is first ready in one iteration and last in the other; nobody tells a loss in the second."""
    entries = [_core.RoundEntry(_core.BatchBounds(2, 99, 3), 12, batch, 7) for batch in (6, 2)]
    report = entries[0].report
    report.host.cpu_use = 1 / 3
    entries[0].report = report
    #          samples, compute, exchange, weighted and averaged square, loss and its samples, accuracy and its, rate
    tables = [[[6, 10, 5, 12, 1, 3.0, 6, 3, 6, 0.1], [6, 20, 4, 12, 1, 0, 0, 0, 0, 0.2]],
              [[2, 4, 11, 8, 3, 3.0, 2, 0, 0, 0.1], [2, 30, 1, 8, 3, 0, 0, 0, 0, 0.2]]]
    sent = numpy.array([numpy.concatenate([_core.pack_entry(entry), numpy.ravel(table)])
                        for entry, table in zip(entries, tables)])
    noise_scale, expected = _core.NoiseScale(), _core.NoiseScale()
    first, second = (entry.report for entry in _core.join_windows(sent, 2, noise_scale, 0.25))
    unplanned = _core.join_windows(sent, 2, _core.NoiseScale(), float("nan"))[0].report
    assert numpy.isnan(unplanned.training.progress), "a job that plans nothing is not over"
    for _ in range(2):
        expected.add(20, 4, 8, 2)
    assert noise_scale.state() == expected.state()
    assert (first.iteration_ms, first.compute_ms, first.wait_ms, first.communication_ms) == (19.5, 15, 2, 2.5)
    assert (second.iteration_ms, second.compute_ms, second.wait_ms, second.communication_ms) == (23, 17, 3, 3)
    for rank, report in enumerate((first, second)):
        assert (report.rank, report.iterations, report.local_batch, report.window) == (rank, 2, (6, 2)[rank], 7)
        said = report.training
        assert (said.loss, said.accuracy, said.gradient_norm, said.learning_rate) == (0.75, 0.5, 2, 0.2)
        assert said.progress == 0.25 and said.noise_scale == pytest.approx(expected.value, nan_ok=True)
    assert first.host.cpu_use == 1 / 3 and numpy.isnan(second.host.cpu_use)
    with pytest.raises(dynamix.InputError, match="windows = "):
        _core.join_windows(sent, 3, noise_scale, 0.25)


class Hold:
    name = "hold"

    def decide(self, round, states):
        assert states.local.shape[0] == states.shares.shape[0] == len(round.entries)
        return round.batches


def test_own_policies_are_compared_with_rules_on_the_same_jobs():
    times = dynamix.simulator.compare(["static", Hold, "balanced"], workloads=["resnet50_scaled"],
                                      workers=[4], seeds=1)
    assert times["static"] == 1.0
    assert times["hold"] == pytest.approx(1.0)
    assert times["balanced"] < 0.9


def test_the_vector_environment_keeps_gymnasiums_contract():
    envs = dynamix.simulator.VectorEnv(3, workers=4, tasks=3, seed=5)
    observation, info = envs.reset(seed=9)
    assert observation in envs.observation_space
    assert info["action_mask"].shape == (3, 5, 5)
    again, _ = envs.reset(seed=9)
    numpy.testing.assert_array_equal(observation["local"], again["local"])
    envs.action_space.seed(1)
    ended = 0
    for _ in range(600):
        actions = envs.action_space.sample()
        assert actions in envs.action_space
        observation, reward, terminated, truncated, info = envs.step(actions)
        assert observation in envs.observation_space
        assert reward.shape == terminated.shape == truncated.shape == (3,)
        assert terminated.dtype == bool and not (terminated & truncated).any()
        assert numpy.isfinite(reward).all() and (info["seconds"] > 0).all()
        for i in numpy.flatnonzero(terminated | truncated):
            assert info["final_obs"][i] in envs.single_observation_space
            ended += 1
    assert ended > 0
    with pytest.raises(dynamix.InputError, match="shape"):
        envs.step(numpy.zeros((3, 4), int))
    envs.close()


def test_the_vector_environment_is_gymnasiums_when_that_is_there(tmp_path):
    """A stand-in with gymnasium's names: what is subclassed and which spaces are made."""
    package = tmp_path / "gymnasium"
    (package / "vector").mkdir(parents=True)
    spaces = pathlib.Path(dynamix.simulator.__file__).with_name("_spaces.py").read_text()
    (package / "__init__.py").write_text("from gymnasium import spaces, vector\n")
    (package / "spaces.py").write_text(spaces)
    (package / "vector" / "__init__.py").write_text(
        "import enum\nclass VectorEnv: pass\nclass AutoresetMode(enum.Enum): SAME_STEP = 'SameStep'\n")
    script = ("import gymnasium, dynamix.simulator as s\n"
              "envs = s.VectorEnv(1, workers=2, tasks=1)\n"
              "assert isinstance(envs, gymnasium.vector.VectorEnv)\n"
              "assert isinstance(envs.action_space, gymnasium.spaces.MultiDiscrete)\n"
              "assert envs.metadata['autoreset_mode'] is gymnasium.vector.AutoresetMode.SAME_STEP\n")
    path = [str(tmp_path), *sys.path]
    subprocess.run([sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}\n{script}"], check=True)


@pytest.mark.parametrize("target, line", [(0.88, "accuracy = 0.88"), ({"loss": 1.5}, "loss = 1.5")])
def test_a_record_names_its_own_target_though_the_policy_was_told_none(tmp_path, target, line):
    record = dynamix.Recorder(tmp_path / "run", target=target)
    record.begin(policy="balanced", workers=2,
                 settings=make_settings("none", "constant", "samples", False, None, None, None))
    record.add_batches([4, 4])
    record.evaluated(accuracy=0.5, loss=2.0)
    record.finish(samples=8, iterations=1)
    target_part = (tmp_path / "run/config.toml").read_text().split("[workload.target]")[1]
    assert line in target_part.split("[")[0]


def test_a_run_is_read_as_arrays(program, tmp_path):
    folder = tmp_path / "run"
    subprocess.run([program, "train", "--backend", "sim", "--workload", "resnet50_scaled", "--cluster",
                    "heterogeneous_4x", "--workers", "4", "--policy", "balanced", "--run", folder,
                    "--json"], check=True, capture_output=True)
    run = dynamix.read_run(folder)
    rounds = len(run["seconds"])
    assert run["policy"] == "balanced" and run["workers"] == 4
    assert run["batches"].shape == run["compute_ms"].shape == (rounds, 4)
    assert (run["batches"].sum(1) == run["global_batch"]).all()
    assert (numpy.diff(run["seconds"]) > 0).all()
    pandas = pytest.importorskip("pandas", reason="needs python3-pandas")
    table = run.to_pandas()
    assert isinstance(table, pandas.DataFrame) and len(table) == rounds * 4
    assert table["training.loss"].notna().any()
    with pytest.raises(dynamix.InputError, match="rounds.jsonl"):
        dynamix.read_run(tmp_path)


def stub_names(tree):
    """Top-level names, and those of each class."""
    names = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names[node.name] = {inner.name if hasattr(inner, "name") else inner.target.id
                                for inner in node.body
                                if isinstance(inner, (ast.FunctionDef, ast.AnnAssign))}
        elif isinstance(node, ast.FunctionDef):
            names[node.name] = None
        elif isinstance(node, ast.AnnAssign):
            names[node.target.id] = None
    return names


def test_the_stub_lists_what_the_module_has():
    stub = pathlib.Path(dynamix.__file__).with_name("_core.pyi").read_text()
    listed = stub_names(ast.parse(stub))
    public = {name for name in vars(_core) if not name.startswith("_")}
    assert set(listed) == public
    for name, members in listed.items():
        if members is None or name in ("InputError", "NetworkTier"):
            continue
        own = {m for m in vars(getattr(_core, name)) if not m.startswith("_")}
        assert members - {"__init__"} == own, name
