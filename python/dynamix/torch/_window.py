"""A window's iterations as numbers: kept on the device, read once, joined over ranks to reports."""
import math

import numpy
import torch

from dynamix import _check, _core

# Columns of a rank's table, one row per iteration.
SAMPLES, COMPUTE, EXCHANGE, WEIGHTED_SQUARE, AVERAGED_SQUARE = range(5)
LOSS, LOSS_SAMPLES, ACCURACY, ACCURACY_SAMPLES, RATE, COLUMNS = range(5, 11)


class Sums:
    """What the user reports in an iteration, each with its samples; tensors stay on their device and
    are added up when the window is read."""

    def __init__(self):
        self.values = {"loss": [], "accuracy": []}

    def add(self, name, value, samples):
        if isinstance(value, torch.Tensor) and value.numel() == 1:
            value = value.item() if value.device.type == "cpu" else value.detach()
        else:
            value = _check.number(name, value)
        self.values[name].append((value, samples))


class Window:
    def __init__(self, clock):
        self._clock = clock
        self._rows = []

    def __len__(self):
        return len(self._rows)

    def add(self, iteration, sums, rate):
        self._rows.append((iteration, sums, rate))

    def clear(self):
        self._rows.clear()

    def table(self, scale):
        """iterations x COLUMNS. Waits for the device, once. `scale` is what the user multiplied the
        loss by before backward."""
        values = []
        for iteration, sums, _ in self._rows:
            values += [iteration.own_square, iteration.averaged_square]
            values += [value for said in sums.values.values() for value, _ in said]
        host = iter(_read(values))
        table = numpy.empty((len(self._rows), COLUMNS))
        for line, (iteration, sums, rate) in zip(table, self._rows):
            own, averaged = next(host) / scale**2, next(host) / scale**2
            span = self._clock.milliseconds
            paused = sum(span(*pause) for pause in iteration.pauses)
            # Who waits for another rank's count waits for its loader, and does not compute.
            stalled = span(*iteration.stall) if iteration.stall else 0.0
            said = []
            for pairs in sums.values.values():
                said += [sum(next(host) * samples for _, samples in pairs), sum(samples for _, samples in pairs)]
            line[:] = (iteration.samples,
                       span(iteration.begin, iteration.ready) - paused - stalled,
                       span(iteration.ready, iteration.done) + stalled, iteration.samples * own,
                       averaged, *said, rate)
        return table


def _read(values):
    """Numbers and tensors as numbers, with one copy from a device."""
    tensors = [value.double().reshape(()) for value in values if isinstance(value, torch.Tensor)]
    host = iter(torch.stack(tensors).tolist() if tensors else ())
    return [next(host) if isinstance(value, torch.Tensor) else float(value) for value in values]


def fill_reports(entries, tables, noise_scale, progress):
    """Times and training of every rank's report, from all ranks' tables. A rank waits from its last
    gradient until the slowest rank has its own; iterations begin together, with the end of the
    exchange before. The noise scale gets each iteration's estimate (core/noise_scale.h)."""
    compute, exchange = tables[:, :, COMPUTE], tables[:, :, EXCHANGE]
    wait = numpy.minimum(compute.max(0) - compute, exchange)
    times = zip(*((part.sum(1) / part.shape[1]).tolist() for part in (compute, exchange, wait)))
    training = _training(tables, noise_scale, progress)
    for rank, (entry, (computes, exchanges, waits)) in enumerate(zip(entries, times)):
        report = entry.report
        report.rank = rank
        report.iterations = tables.shape[1]
        report.local_batch = entry.batch
        report.iteration_ms = computes + exchanges
        report.compute_ms = computes
        report.wait_ms = waits
        report.communication_ms = exchanges - waits
        report.training = training
        entry.report = report


def _training(tables, noise_scale, progress):
    statistics = _core.WindowStatistics()
    rows, rates = tables.sum(0).tolist(), tables[0, :, RATE].tolist()
    losses = _means([(row[LOSS], row[LOSS_SAMPLES]) for row in rows])
    accuracies = _means([(row[ACCURACY], row[ACCURACY_SAMPLES]) for row in rows])
    for loss, accuracy, row, rate in zip(losses, accuracies, rows, rates):
        statistics.add(loss, accuracy, math.sqrt(row[AVERAGED_SQUARE]), rate)
        noise_scale.add(row[WEIGHTED_SQUARE], row[AVERAGED_SQUARE], row[SAMPLES], len(tables))
    return statistics.make(noise_scale.value, progress)


def _means(pairs):
    """Of (sum, count) per iteration, over the ranks that said something; iterations without a word
    get the mean of the others."""
    known = [value / count for value, count in pairs if count > 0]
    others = sum(known) / len(known) if known else math.nan
    return [value / count if count > 0 else others for value, count in pairs]
