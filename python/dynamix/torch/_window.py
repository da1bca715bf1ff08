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
            value = value.detach().reshape(())
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
    """Numbers and tensors as numbers, with one copy from the device."""
    tensors = [value.double().reshape(()) for value in values if isinstance(value, torch.Tensor)]
    host = iter(torch.stack(tensors).tolist() if tensors else ())
    return [next(host) if isinstance(value, torch.Tensor) else float(value) for value in values]


def add_noise(noise_scale, tables):
    """Each iteration's estimate from all ranks' norms (core/noise_scale.h)."""
    for weighted, averaged, samples in zip(tables[:, :, WEIGHTED_SQUARE].sum(0),
                                           tables[0, :, AVERAGED_SQUARE],
                                           tables[:, :, SAMPLES].sum(0)):
        noise_scale.add(weighted, averaged, samples, len(tables))


def fill_reports(entries, tables, noise_scale, progress):
    """Times and training of every rank's report, from all ranks' tables. A rank waits from its last
    gradient until the slowest rank has its own; iterations begin together, with the end of the
    exchange before."""
    compute, exchange = tables[:, :, COMPUTE], tables[:, :, EXCHANGE]
    wait = numpy.clip(compute.max(0) - compute, 0, exchange)
    training = _training(tables, noise_scale, progress)
    for rank, entry in enumerate(entries):
        report = entry.report
        report.rank = rank
        report.iterations = tables.shape[1]
        report.local_batch = entry.batch
        report.iteration_ms = (compute + exchange)[rank].mean()
        report.compute_ms = compute[rank].mean()
        report.wait_ms = wait[rank].mean()
        report.communication_ms = (exchange - wait)[rank].mean()
        report.training = training
        entry.report = report


def _training(tables, noise_scale, progress):
    statistics = _core.WindowStatistics()
    losses = _means(tables[:, :, LOSS], tables[:, :, LOSS_SAMPLES])
    accuracies = _means(tables[:, :, ACCURACY], tables[:, :, ACCURACY_SAMPLES])
    for loss, accuracy, square, rate in zip(losses, accuracies, tables[0, :, AVERAGED_SQUARE],
                                            tables[0, :, RATE]):
        statistics.add(loss, accuracy, math.sqrt(square), rate)
    return statistics.make(noise_scale, progress)


def _means(sums, counts):
    """Per iteration, over the ranks that said something; iterations without a word get the mean of
    the others."""
    counts = counts.sum(0)
    means = numpy.divide(sums.sum(0), counts, out=numpy.full(len(counts), math.nan), where=counts > 0)
    known = means[~numpy.isnan(means)]
    return numpy.where(numpy.isnan(means), known.mean() if len(known) else math.nan, means)
