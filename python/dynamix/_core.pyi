"""DYNAMIX's C++ library. Use the package dynamix; its classes say what these mean."""
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy
import numpy.typing

ACTIONS: int
HOLD: int

class InputError(ValueError): ...

class NetworkTier:
    none: NetworkTier
    interface: NetworkTier
    own_sockets: NetworkTier
    inet_diag: NetworkTier
    ebpf: NetworkTier

class NetworkReport:
    tier: NetworkTier
    bytes_sent: float
    bytes_received: float
    retransmission_ratio: float
    smoothed_rtt_us: float
    minimum_rtt_us: float
    delivery_mbps: float
    def __init__(self) -> None: ...

class HostReport:
    cpu_use: float
    cpu_throttled: float
    cpu_pressure: float
    memory_used_bytes: float
    memory_limit_bytes: float
    def __init__(self) -> None: ...

class TrainingReport:
    loss: float
    accuracy: float
    accuracy_spread: float
    gradient_norm: float
    gradient_norm_spread: float
    noise_scale: float
    learning_rate: float
    progress: float
    def __init__(self) -> None: ...

class Report:
    rank: int
    window: int
    iterations: int
    local_batch: int
    iteration_ms: float
    compute_ms: float
    wait_ms: float
    communication_ms: float
    network: NetworkReport
    host: HostReport
    training: TrainingReport
    def __init__(self) -> None: ...

class BatchBounds:
    min: int
    max: int
    granularity: int
    dead_band: float
    def __init__(self, min: int = ..., max: int = ..., granularity: int = ...,
                 dead_band: float = ...) -> None: ...
    def validate(self, field: str) -> None: ...

class RoundEntry:
    bounds: BatchBounds
    start_batch: int
    batch: int
    active: bool
    report: Report | None
    def __init__(self, bounds: BatchBounds, start_batch: int, batch: int,
                 window: int = ...) -> None: ...

class JobSettings:
    def __init__(self, *, rule: str = ..., schedule: str = ..., clock: str = ...,
                 adaptive: bool = ..., base_learning_rate: float = ..., base_batch: float = ...,
                 target_accuracy: float = ..., target_loss: float = ...) -> None: ...

class Round:
    index: int
    seconds: float
    entries: list[RoundEntry]
    base_learning_rate: float
    base_batch: float
    target_accuracy: float
    target_loss: float
    rule: str
    schedule: str
    clock: str
    global_batch: float
    batches: numpy.ndarray
    def __init__(self, index: int, settings: JobSettings,
                 entries: Sequence[RoundEntry]) -> None: ...
    def numbers(self, field: str) -> numpy.ndarray: ...

class States:
    local: numpy.ndarray
    team: numpy.ndarray
    shares: numpy.ndarray

class Actions:
    team: int
    local: list[int]
    team_factor: float | None
    def __init__(self, team: int = ..., local: Sequence[int] = ...,
                 team_factor: float | None = ...) -> None: ...

class Decision:
    sizes: list[int]
    policy: str
    failure: str
    states: States
    advises: bool

class Arbitrator:
    def __init__(self, policy: Any = ..., *, seed: int = ..., guard: bool = ...) -> None: ...
    def open(self, round: Round) -> list[int]: ...
    def step(self, round: Round) -> Decision: ...
    def state(self) -> list[float]: ...
    def restore(self, state: Sequence[float]) -> None: ...

class Sampler:
    cursor: int
    epoch: int
    def __init__(self, samples: int, seed: int = ..., cursor: int = ...) -> None: ...
    def part(self, batches: Sequence[int], rank: int) -> list[int]: ...
    def within_epoch(self, batches: Sequence[int]) -> list[int]: ...
    def advance(self, batches: Sequence[int]) -> None: ...

class NoiseScale:
    value: float
    def __init__(self, memory: float = ...) -> None: ...
    def add(self, weighted_squared_norms: float, squared_norm: float, samples: float,
            workers: int) -> None: ...
    def state(self) -> list[float]: ...
    def restore(self, state: Sequence[float]) -> None: ...

def squared_norm(address: int, count: int, is_double: bool) -> float: ...
def scale(address: int, count: int, is_double: bool, factor: float) -> float: ...

class AdvisorOptions:
    def __init__(self, *, addresses: str, job: str = ..., rank: int = ..., size: int = ...,
                 token: str = ..., tls_authority: str = ..., tls_certificate: str = ...,
                 tls_key: str = ..., tls_name: str = ..., timeout_s: float = ..., opening_s: float = ...,
                 max_factor: float = ..., run: int = ...) -> None: ...

class RemoteAdvisor:
    def __init__(self, options: AdvisorOptions, settings: JobSettings) -> None: ...
    def open(self, entry: RoundEntry, job_start: float) -> int | None: ...
    def submit(self, index: int, entry: RoundEntry) -> None: ...
    def poll(self) -> tuple[bool, int | None]: ...
    def counts(self) -> dict[str, Any]: ...
    def take_log(self) -> list[str]: ...
    def close(self) -> None: ...

class Worker:
    batch: int
    def __init__(self, advisor: AdvisorOptions, settings: JobSettings, bounds: BatchBounds,
                 start_batch: int, window_iterations: int, monitor: str, device: int) -> None: ...
    def end_iteration(self, **measured: float) -> int: ...
    def counts(self) -> dict[str, Any]: ...
    def close(self) -> None: ...

class Monitor:
    tier: NetworkTier
    def __init__(self, best: str = ..., device: int = ...) -> None: ...
    def measure(self, entry: RoundEntry) -> None: ...

class RankPlace:
    given: bool
    rank: int
    size: int
    local_rank: int
    address: str
    port: int
    backend: str

class VectorEnvironment:
    team: numpy.ndarray
    local: numpy.ndarray
    team_mask: numpy.ndarray
    local_mask: numpy.ndarray
    def __init__(self, *, environments: int, workers: int, kind: str, miniature_share: float,
                 tasks: int, actions: str, seed: int, threads: int) -> None: ...
    def reset(self, seed: int) -> None: ...
    def step(self, team: numpy.typing.ArrayLike,
             local: numpy.typing.ArrayLike) -> dict[str, numpy.ndarray]: ...
    def round(self, environment: int) -> Round: ...

class JobResult:
    scenario: str
    workload: str
    policy: str
    workers: int
    seed: int
    time_to_target_s: float
    reached: bool
    accuracy: float
    mean_wait_share: float

def clamp_batch(wanted: float, current: int, bounds: BatchBounds) -> int: ...
def pack_entry(entry: RoundEntry) -> numpy.ndarray: ...
def join_windows(windows: numpy.typing.ArrayLike, iterations: int, noise_scale: NoiseScale,
                 progress: float) -> list[RoundEntry]: ...
def learning_rate_factor(rule: str, global_batch: float, base_batch: float,
                         noise_scale: float) -> float: ...
def require_in_range(field: str, value: int, low: int, high: int) -> None: ...
def read_rank_place(variables: Mapping[str, str]) -> RankPlace: ...
def interface_towards(peer: str) -> str: ...
def read_run(folder: str) -> dict[str, Any]: ...
def evaluate(policies: Iterable[Any], suite: str, workloads: Sequence[str],
             workers: Sequence[int], seeds: int, threads: int) -> list[JobResult]: ...
def team_columns() -> list[str]: ...
def local_columns() -> list[str]: ...

class Pace:
    def __init__(self, cluster: str, workload: str, workers: int, rank: int, seed: int) -> None: ...
    def next_ms(self, batch: int, seconds: float) -> float: ...

class JobClock:
    def __init__(self, path: str) -> None: ...
    def set(self, seconds: float) -> None: ...

class RunFolder:
    def __init__(self, folder: str, *, policy: str, workers: int, seed: int, window: int, name: str,
                 settings: JobSettings, target_accuracy: float, target_loss: float,
                 planned_samples: float, cluster: str, workload: str) -> None: ...
    def add(self, round: Round, decision: Decision, seconds: float, accuracy: float,
            loss: float) -> None: ...
    def add_batches(self, index: int, batches: Sequence[int], window_seconds: float, seconds: float,
                    accuracy: float, loss: float) -> None: ...
    def finish(self, *, reached: bool, time_to_target_s: float, accuracy: float, loss: float,
               windows: int, mean_wait_share: float, global_batch: float, seconds: float, more: str) -> str: ...

def comparison(summaries: Sequence[str]) -> str: ...
