"""Where the tests find the package (PYTHONPATH), the programs and the sources (CTest sets them)."""
import os
import pathlib
import sys

import pytest
import torch

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests"))
torch.set_num_threads(1)  # the ranks are forked from this process


@pytest.fixture(scope="session")
def source():
    return SOURCE


@pytest.fixture(scope="session")
def program():
    """The command dynamix."""
    path = pathlib.Path(os.environ.get("DYNAMIX_PROGRAM", SOURCE / "build/release/bin/dynamix"))
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path
