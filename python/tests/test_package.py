"""pip makes a wheel without a network, and it imports from anywhere."""
import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, dynamix, dynamix.simulator
assert os.path.realpath(dynamix.__file__).startswith(os.path.realpath({target!r})), dynamix.__file__
print(dynamix.Policy("default").decide([32, 32], compute_ms=[5.0, 9.0], iteration_ms=10.0))
print(dynamix.simulator.VectorEnv(1, workers=2, tasks=1).reset(seed=1)[0]["team"].shape)
"""


def test_a_wheel_imports_from_anywhere(source, program, tmp_path):
    pytest.importorskip("wheel", reason="needs python3-wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
    environment = {**os.environ, "DYNAMIX_BUILD": str(program.parents[1]), "PIP_NO_INDEX": "1"}
    environment.pop("PYTHONPATH", None)
    if subprocess.run([*pip, "--version"], env=environment, capture_output=True).returncode != 0:
        pytest.skip("needs python3-pip")
    subprocess.run([*pip, "wheel", "--no-deps", "-w", tmp_path, source], env=environment, check=True,
                   stdout=subprocess.DEVNULL)
    wheel, = tmp_path.glob("dynamix-*.whl")
    target = tmp_path / "site"
    subprocess.run([*pip, "install", "--no-deps", "--target", target, wheel], env=environment,
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run([sys.executable, "-c", SCRIPT.format(target=str(target))], cwd="/", check=True,
                   env={**environment, "PYTHONPATH": str(target)})
