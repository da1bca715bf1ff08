"""A window's iterations as numbers: kept on the device, read once."""
import numpy
import torch

from dynamix import _check


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
        """One row per iteration, as _core.join_windows wants them: samples; milliseconds of compute
        and of the exchange; squared norm of the own gradient times samples, and of this rank's
        share of the job's; loss and accuracy, each times its samples and with them; learning rate.
        Waits for the device, once. `scale` is what the user multiplied the loss by before
        backward."""
        values = []
        for iteration, sums, _ in self._rows:
            values += (iteration.own_square, iteration.averaged_square)
            for said in sums.values.values():
                values += [value for value, _ in said]
        host = iter(_read(values))
        span, square = self._clock.milliseconds, scale**2
        table = []
        for iteration, sums, rate in self._rows:
            own, averaged = next(host) / square, next(host) / square
            compute = span(iteration.begin, iteration.ready)
            exchange = span(iteration.ready, iteration.done)
            for pause in iteration.pauses:
                compute -= span(*pause)
            if iteration.stall:
                # Who waits for another rank's count waits for its loader, and does not compute.
                stalled = span(*iteration.stall)
                compute, exchange = compute - stalled, exchange + stalled
            row = [iteration.samples, compute, exchange, iteration.samples * own, averaged]
            for pairs in sums.values.values():
                row += (sum(next(host) * samples for _, samples in pairs), sum(samples for _, samples in pairs))
            table.append(row + [rate])
        return numpy.array(table, dtype=float)


def _read(values):
    """Numbers and tensors as numbers, with one copy from a device."""
    tensors = [value.double().reshape(()) for value in values if isinstance(value, torch.Tensor)]
    host = iter(torch.stack(tensors).tolist() if tensors else ())
    return [next(host) if isinstance(value, torch.Tensor) else float(value) for value in values]
