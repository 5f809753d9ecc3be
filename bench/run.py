"""Measure the speed of posenc against the direct ways of computing the same thing.

    make bench

Everything is a ratio of two times from the same run: machines differ and are noisy, ratios less
so. Contenders and sizes take turns in random order, and each time is the median over rounds, on
one thread. Writes results/bench.md and results/bench.json beside this file.
"""

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from posenc.attention import scaled_dot_product_attention
from posenc.bias import t5_bias, t5_buckets
from posenc.masks import causal_mask
from posenc.rotary import apply_rotary, rotary_turns, rotate
from posenc.sinusoidal import sinusoidal_encoding
from posenc.tasks import ShiftByOne
from posenc.training import fit
from posenc.transformer import Tagger

RESULTS = Path(__file__).resolve().parent / "results"
SIZES = ((512, 64), (2048, 512), (8192, 512), (65536, 1024))

Contender = Callable[[], object]


def direct_table(length: int, d_model: int, dtype: type) -> np.ndarray:
    """Compute the formula as it reads: a sine or a cosine for every entry."""
    omega = 10000.0 ** (-np.arange(0, d_model, 2) / d_model)
    angles = np.arange(length)[:, np.newaxis] * omega
    table = np.empty((length, d_model), dtype)
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)
    return table


def torch_table(length: int, d_model: int) -> object:
    """Build the table as the PyTorch tutorial does, in float32."""
    import torch

    position = torch.arange(length).unsqueeze(1)
    factor = torch.exp(torch.arange(0, d_model, 2) * (-np.log(10000.0) / d_model))
    table = torch.zeros(length, d_model)
    table[:, 0::2] = torch.sin(position * factor)
    table[:, 1::2] = torch.cos(position * factor)
    return table


def has_torch() -> bool:
    """Say whether the comparison with torch can be made here."""
    try:
        import torch
    except ImportError:
        return False
    torch.set_num_threads(1)
    return True


def naive_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Attend without any check: the least that an implementation has to do."""
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ value


def gathered_bias(table: np.ndarray, length: int) -> np.ndarray:
    """Look the T5 bias up pair by pair."""
    relative = np.arange(length) - np.arange(length)[:, np.newaxis]
    return np.moveaxis(table[t5_buckets(relative)], -1, 0)


def measure(groups: dict[str, dict[str, Contender]], rounds: int) -> dict[str, dict[str, float]]:
    """Time every contender of every group once a round, in random order; give medians."""
    rng = np.random.default_rng(0)
    turns = [(group, name) for group, contenders in groups.items() for name in contenders]
    times: dict[tuple[str, str], list[float]] = {turn: [] for turn in turns}
    for group, name in turns:  # once unmeasured, for what only happens the first time
        groups[group][name]()
    for _ in range(rounds):
        for index in rng.permutation(len(turns)):
            group, name = turns[index]
            start = time.perf_counter()
            groups[group][name]()
            times[group, name].append(time.perf_counter() - start)
    return {
        group: {name: statistics.median(times[group, name]) for name in contenders}
        for group, contenders in groups.items()
    }


def table_groups(with_torch: bool, sizes: tuple[tuple[int, int], ...]) -> dict:
    """Make one group a size and dtype: ours, the direct way, and filling the same bytes."""
    groups = {}
    for length, d_model in sizes:
        for dtype in (np.float32, np.float64):
            buffer = np.empty((length, d_model), dtype)
            contenders: dict[str, Contender] = {
                "posenc": lambda n=length, d=d_model, t=dtype: sinusoidal_encoding(n, d, dtype=t),
                "direct": lambda n=length, d=d_model, t=dtype: direct_table(n, d, t),
                "fill": lambda b=buffer: b.fill(0.5),
            }
            if with_torch and dtype is np.float32:
                contenders["torch tutorial"] = lambda n=length, d=d_model: torch_table(n, d)
            groups[f"table {length} x {d_model} {np.dtype(dtype)}"] = contenders
    return groups


def other_groups() -> dict:
    """Set RoPE against a copy, the T5 bias against the gather, attention against the naive form."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1, 8, 2048, 64)).astype(np.float32)
    positions = np.arange(2048)
    turns = rotary_turns(positions, 64, dtype=x.dtype)
    bias_table = rng.normal(size=(32, 8)).astype(np.float32)
    query, key, value = rng.normal(size=(3, 4, 8, 128, 32)).astype(np.float32)
    mask = causal_mask(128)
    return {
        "RoPE (1, 8, 2048, 64) float32": {
            "rotate, interleaved": lambda: rotate(x, turns),
            "rotate, half": lambda: rotate(x, turns, pairing="half"),
            "apply_rotary, interleaved": lambda: apply_rotary(x, positions),
            "copy": x.copy,
        },
        "T5 bias (8, 2048, 2048)": {
            "posenc": lambda: t5_bias(bias_table, 2048, 2048),
            "gather": lambda: gathered_bias(bias_table, 2048),
        },
        "attention (4, 8, 128, 32) float32": {
            "posenc": lambda: scaled_dot_product_attention(query, key, value),
            "posenc causal": lambda: scaled_dot_product_attention(query, key, value, mask=mask),
            "naive": lambda: naive_attention(query, key, value),
        },
    }


def trainer_steps_per_second(steps: int = 40) -> float:
    """Count steps of the small trainer: batch 64, length 16, two layers of width 32."""
    rng = np.random.default_rng(2)
    task = ShiftByOne(length=16)
    model = Tagger(task.vocab_size, 32, 4, 64, 2, rng=rng, encoding="sinusoidal")
    start = time.perf_counter()
    fit(model, lambda: task.batch(rng, 64), steps=steps)
    return steps / (time.perf_counter() - start)


def as_markdown(medians: dict[str, dict[str, float]], steps: float) -> str:
    """Write the medians as a table: times for orientation, ratios to rely on."""
    lines = [
        "| what | contender | median ms | times the first |",
        "|---|---|---:|---:|",
    ]
    for group, contenders in medians.items():
        first = next(iter(contenders.values()))
        for name, seconds in contenders.items():
            lines.append(f"| {group} | {name} | {1e3 * seconds:.3f} | {seconds / first:.2f} |")
    lines.append(f"\nThe trainer makes {steps:.0f} steps a second.")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="leave out the largest tables")
    options = parser.parse_args()
    sizes = SIZES[:-1] if options.quick else SIZES
    print("measuring; a few minutes", flush=True)
    with threadpool_limits(1):
        medians = measure(table_groups(has_torch(), sizes) | other_groups(), options.rounds)
        steps = trainer_steps_per_second()
    table = as_markdown(medians, steps)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "bench.md").write_text(table)
    record = {
        "numpy": np.__version__,
        "machine": platform.machine(),
        "python": platform.python_version(),
        "rounds": options.rounds,
        "median_seconds": medians,
        "trainer_steps_per_second": steps,
    }
    (RESULTS / "bench.json").write_text(json.dumps(record, indent=2) + "\n")
    print(table)


if __name__ == "__main__":
    main()
