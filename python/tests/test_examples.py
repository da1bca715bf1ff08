"""The examples run, in small."""
import difflib
import os
import subprocess
import sys

import pytest

LIMIT_S = 600  # only a fault takes so long
EXAMPLES = {
    "fashion_mnist": ("--epochs=1", "--samples=1200"),
    "cifar10_resnet18": ("--epochs=1", "--samples=160"),
    "transformer": ("--epochs=1", "--samples=160", "--target=5.6"),
    "accumulation": ("--epochs=2", "--samples=1100"),
    "adaptive_ddp": ("1", "700"),
    "plain_ddp": ("1", "700"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, program, source, tmp_path):
    if name == "cifar10_resnet18":
        pytest.importorskip("torchvision", reason="needs python3-torchvision")
    if name not in ("cifar10_resnet18", "transformer") and not os.path.exists("/usr/share/datasets/fashion-mnist"):
        pytest.skip("needs the Debian package dataset-fashion-mnist")
    done = subprocess.run(
        [program, "launch", "-n", "2", "--", sys.executable, source / f"examples/python/{name}.py",
         *EXAMPLES[name]], cwd=tmp_path, env={**os.environ, "DYNAMIX_DATASETS": str(tmp_path)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout
    assert "[0] epoch 0: " in done.stdout, done.stdout


def test_own_policy(source):
    done = subprocess.run([sys.executable, source / "examples/python/own_policy.py", "--seeds=1",
                           "--workers=4"], stdout=subprocess.PIPE, text=True, timeout=LIMIT_S, check=True)
    assert "halfway" in done.stdout and "default" in done.stdout


def test_the_adaptive_script_differs_from_the_plain_one_in_a_few_lines(source):
    folder = source / "examples/python"
    plain, adaptive = ((folder / f"{name}_ddp.py").read_text().splitlines() for name in ("plain", "adaptive"))
    changed = [line for line in difflib.ndiff(plain[2:], adaptive[2:]) if line[0] in "+-"]
    assert len([line for line in changed if line[0] == "+"]) == 3, changed
    assert len(changed) == 9, changed


def test_fashion_mnist_is_as_short_as_promised(source):
    assert len((source / "examples/python/fashion_mnist.py").read_text().splitlines()) <= 42
