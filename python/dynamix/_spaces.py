"""The few of Gymnasium's spaces that VectorEnv needs, for when gymnasium is not installed."""
import numpy


class _Space:
    def seed(self, seed=None):
        self._random = numpy.random.default_rng(seed)

    def __contains__(self, value):
        return self.contains(value)


class Box(_Space):
    def __init__(self, low, high, shape, dtype):
        self.low, self.high = numpy.full(shape, low, dtype), numpy.full(shape, high, dtype)
        self.shape, self.dtype = tuple(shape), numpy.dtype(dtype)
        self.seed()

    def contains(self, value):
        value = numpy.asarray(value)
        return bool(value.shape == self.shape and value.dtype == self.dtype
                    and (value >= self.low).all() and (value <= self.high).all())

    def sample(self):
        return self._random.standard_normal(self.shape).astype(self.dtype)


class MultiDiscrete(_Space):
    def __init__(self, nvec):
        self.nvec = numpy.asarray(nvec)
        self.shape, self.dtype = self.nvec.shape, numpy.dtype(numpy.int64)
        self.seed()

    def contains(self, value):
        value = numpy.asarray(value)
        return bool(value.shape == self.shape and numpy.issubdtype(value.dtype, numpy.integer)
                    and (value >= 0).all() and (value < self.nvec).all())

    def sample(self):
        return self._random.integers(self.nvec)


class Dict(_Space):
    def __init__(self, spaces):
        self.spaces = dict(spaces)
        self.seed()

    def __getitem__(self, name):
        return self.spaces[name]

    def keys(self):
        return self.spaces.keys()

    def contains(self, value):
        return set(value) == set(self.spaces) and all(s.contains(value[n]) for n, s in self.spaces.items())

    def sample(self):
        return {name: space.sample() for name, space in self.spaces.items()}
