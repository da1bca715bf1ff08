"""What DYNAMIX itself costs: each part by its benchmark, as a share of an iteration where it takes part in one."""
from document import Goal, Part
from figures import prose, table
from steps import Step

TITLE = "Overhead"
CLAIM = ("What the parts cost: the arbitrator, the monitor, the exchange's tail and sampler, learning, deciding, the "
         "dashboard, and `adapt` in Python, each measured beside the same thing without it, in one run.")
BEFORE = "Figures of before are in [history.md](history.md#speed)."
PARTIAL = True
DATA = ["fashion_mnist"]

BENCHMARKS = {"arbitrator": 3.0, "monitor": 2.5, "training": 4.0, "ppo": 1.5, "simulator": 1.0, "python": 3.0, "dashboard": 1.0}
# What a benchmark calls it -> what a reader does.
NAMES = {
    "iteration_running_vs_absent": "iteration of 4 ms with the arbitrator over without",
    "iteration_stopped_vs_absent": "the same while the arbitrator is stopped",
    "round_trip_32_vs_echo_together": "report to advice, 32 workers, over a bare gRPC echo that waits for all",
    "round_trip_1024_vs_echo_together": "report to advice, 1,024 workers, over such an echo",
    "round_trip_32_median": "report to advice, 32 workers",
    "reports_per_s": "reports that one arbitrator takes",
    "scale_64x64_processor_per_report": "processor time per report, 64 jobs of 64 workers",
    "scale_64x64_memory_per_worker": "memory of the arbitrator per worker, the same",
    "training_with_over_without": "iteration of two ranks of LeNet with the eBPF monitor over without",
    "lenet_one_rank_vs_plain": "samples/s of one rank of LeNet over the plain libtorch loop",
    "lenet_two_ranks_vs_ddp": "samples/s of two ranks of LeNet over PyTorch DDP",
    "lenet_elastic_vs_fixed": "iteration of an elastic group over a fixed one, LeNet",
    "vgg16_one_rank_vs_plain": "samples/s of one rank of VGG16 x 0.125 over the plain libtorch loop",
    "vgg16_two_ranks_vs_ddp": "samples/s of two ranks of VGG16 x 0.125 over PyTorch DDP",
    "round_trip_32_vs_echo": "report to advice, 32 workers, over a bare gRPC echo",
    "round_trip_1024_vs_echo": "report to advice, 1,024 workers, over a bare gRPC echo",
    "ebpf_share_of_one_core": "processor time of the eBPF program under an all-reduce load",
    "iteration_with_over_without": "iteration of a ring with the monitor over without",
    "lenet_data_share": "share of an iteration that reads samples, LeNet",
    "vgg16_data_share": "share of an iteration that reads samples, VGG16 x 0.125",
    "vgg16_elastic_vs_fixed": "iteration of an elastic group over a fixed one, VGG16 x 0.125",
    "quadratic_worker_windows_per_s": "simulated windows of a worker, quadratics, 8 workers",
    "quadratic_worker_windows_per_s_1024": "simulated windows of a worker, quadratics, 1,024 workers",
    "cost_per_worker_1024_over_8": "simulator's cost of a worker, 1,024 workers over 8",
    "miniature_worker_windows_per_s": "simulated windows of a worker, miniatures",
    "miniature_with_held_out_worker_windows_per_s": "the same with held-out losses",
    "miniature_ceiling_worker_windows_per_s": "the same as matrix products of OpenBLAS alone",
    "miniature_vs_ceiling": "windows of miniatures over those matrix products",
    "dashboard_iteration_with_over_without": "iteration of two ranks of LeNet with a dashboard and four viewers over without",
    "steps_vs_pytorch": "PPO steps/s over a minimal PyTorch PPO",
    "steps_vs_ceiling": "PPO steps/s over the sgemm ceiling",
    "decide_32_us": "deciding for 32 workers",
    "decide_1024_us": "deciding for 1,024 workers",
}


def steps(place):
    chosen = ["ppo"] if place.quick else BENCHMARKS
    return [Step(f"bench-{name}", ["scripts/bench", name, "--json"], BENCHMARKS[name], alone=True) for name in chosen]


def condense(outputs):
    return {step: output["results"] for step, output in outputs.items()}


def text(row):
    value = f"{row['value']:,.0f}" if row["value"] >= 1000 else f"{row['value']:.4g}"
    return f"{value} {row['unit']}".replace(" ratio", "")


def asks(row):
    """Whether the benchmark has a target that can be missed."""
    return row["target"] is not None and (row["better"] == "lower" or row["target"] > 0)


def is_met(row):
    return row["value"] >= row["target"] if row["better"] == "higher" else row["value"] <= row["target"]


def part(found):
    goals, rows = [], []
    for step, results in found.items():
        for row in results:
            what = NAMES.get(row["name"], row["name"].replace("_", " "))
            if asks(row):
                sign = "at least" if row["better"] == "higher" else "at most"
                goals.append(Goal(f"{what}: {sign} {row['target']:,g} {row['unit']}".replace(" ratio", ""), text(row),
                                  is_met(row)))
            else:
                rows.append([what, text(row), f"`scripts/bench {step.removeprefix('bench-')}`"])
    missed = [goal.text.rsplit(": at ", 1)[0] for goal in goals if not goal.met]
    lead = (f"{len(goals) - len(missed)} of {len(goals)} targets are met. Ratios are of two things measured in one run; other "
            "work on the machine adds to both. Absolute figures, for orientation:")
    verdict = f"Missed: {'; '.join(missed)}." if missed else "Every target is met."
    return Part(goals, prose(lead) + "\n\n" + table(["what", "figure", "command"], rows), {}, verdict)
