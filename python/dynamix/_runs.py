from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable

from dynamix import _check, _core


class Run(dict):
    """A recorded run. Arrays over rounds ("seconds", "global_batch", "held_out_accuracy", ...), over
    rounds and workers ("batches", "compute_ms", "network.delivery_mbps", ...), and facts ("policy",
    "reached", "time_to_target_s", ...)."""

    def to_pandas(self):
        """One row per round and worker; needs pandas."""
        import pandas

        rounds, workers = self["batches"].shape
        columns = {"worker": list(range(workers)) * rounds}
        for name, values in self.items():
            shape = getattr(values, "shape", ())
            if shape == (rounds,):
                columns[name] = values.repeat(workers)
            elif shape == (rounds, workers):
                columns[name] = values.ravel()
        return pandas.DataFrame(columns)


def read_run(folder: str | os.PathLike) -> Run:
    """What `dynamix train`, `dynamix compare` or a Python job left in `folder`."""
    return Run(_core.read_run(str(folder)))


def comparison(folders: Iterable[str | os.PathLike]) -> str:
    """The table that `dynamix compare` prints of recorded runs, and who won."""
    texts = []
    for folder in folders:
        try:
            texts.append(pathlib.Path(folder, "summary.json").read_text())
        except OSError as error:
            raise _core.InputError(f"no {folder}/summary.json: not the folder of a run that ended") from error
    if not texts:
        raise _check.refused("folders", "none", "folders of runs that ended")
    return _core.comparison(texts)
