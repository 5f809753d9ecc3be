"""The pictures of the chapter on the formula: waves, clock hands, tables, norms and layouts.

A pair of columns is drawn as a clock hand that starts at twelve and turns clockwise: the sine is
how far the tip stands to the right, the cosine how far it stands up.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from posenc.figures import drawing
from posenc.sinusoidal import frequencies, sinusoidal_encoding, wavelengths


def ambiguous_sine(first: int = 8, second: int = 14, length: int = 20) -> drawing.Drawing:
    """Draw sine and cosine of the position and mark two positions that share their sine."""
    positions = np.arange(length)
    fine = np.linspace(0, length - 1, 400)
    waves = {"sine": np.sin, "cosine": np.cos}
    with drawing.canvas(width=5.2, height=3.8, rows=2, sharex=True) as (figure, axes):
        for ax, (name, wave), color in zip(
            axes, waves.items(), (drawing.SINE, drawing.COSINE), strict=True
        ):
            ax.plot(fine, wave(fine), color=color, alpha=0.35)
            ax.plot(positions, wave(positions), "o", color=color, markersize=4)
            for position in (first, second):
                ax.plot(position, wave(position), "o", color=drawing.INK, markersize=9, mfc="none")
                ax.plot([position, position], [0, wave(position)], ":", color=drawing.INK, lw=1.2)
            ax.axhline(0, color=drawing.INK, lw=0.6)
            ax.set_ylabel(name)
            ax.set_ylim(-1.25, 1.25)
        axes[0].axhline(np.sin(first), color=drawing.INK, lw=0.8, ls="--")
        axes[0].set_title(f"Positions {first} and {second}: one sine, two cosines")
        axes[1].set_xlabel("position")
        axes[1].xaxis.set_major_locator(MaxNLocator(integer=True))
    pair = np.array([[np.sin(p), np.cos(p)] for p in (first, second)])
    alt = (
        f"Sine and cosine of the positions 0 to {length - 1}. Positions {first} and {second} have "
        f"almost the same sine, {pair[0, 0]:.3f} and {pair[1, 0]:.3f}, but cosines of opposite "
        f"sign, {pair[0, 1]:.3f} and {pair[1, 1]:.3f}."
    )
    return drawing.Drawing(
        figure,
        alt,
        {"positions": positions, "sine": np.sin(positions), "cosine": np.cos(positions)},
    )


def _clock(ax: Any, angle: float, *, color: str = drawing.INK) -> None:
    """Draw one hand with its two shadows: sine along the horizontal, cosine along the vertical."""
    turn = np.linspace(0, 2 * np.pi, 120)
    ax.plot(np.sin(turn), np.cos(turn), color=drawing.PADDING, lw=1)
    x, y = np.sin(angle), np.cos(angle)
    ax.plot([0, x], [0, 0], color=drawing.SINE, lw=3.5, solid_capstyle="butt")
    ax.plot([x, x], [0, y], color=drawing.COSINE, lw=3.5, solid_capstyle="butt")
    ax.plot([0, x], [0, y], color=color, lw=2.2)
    ax.plot(x, y, "o", color=color, markersize=5)
    ax.set(xlim=(-1.12, 1.12), ylim=(-1.12, 1.12), aspect="equal")
    ax.set_axis_off()


def clock_hand(omega: float = 1.0, count: int = 7) -> drawing.Drawing:
    """Draw one hand at the positions 0 … count − 1 on one dial."""
    angles = omega * np.arange(count)
    tips = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    turn = np.linspace(0, 2 * np.pi, 200)
    with drawing.canvas(width=4.2, height=4.2) as (figure, ax):
        ax.plot(np.sin(turn), np.cos(turn), color=drawing.PADDING, lw=1)
        for position, (x, y) in enumerate(tips):
            ax.plot([0, x], [0, y], color=drawing.INK, lw=1.6, alpha=0.35 if position else 1)
            ax.plot(x, y, "o", color=drawing.INK, markersize=6)
            ax.text(1.15 * x, 1.15 * y, str(position), ha="center", va="center")
        ax.plot([-1, 1], [0, 0], color=drawing.SINE, lw=1.2)
        ax.plot([0, 0], [-1, 1], color=drawing.COSINE, lw=1.2)
        ax.text(0.98, 0.05, "sine", color=drawing.SINE, ha="right")
        ax.text(0.05, -0.95, "cosine", color=drawing.COSINE)
        ax.set(xlim=(-1.35, 1.35), ylim=(-1.3, 1.3), aspect="equal")
        ax.set_axis_off()
        ax.set_title("A sine and a cosine make a hand")
    alt = (
        f"A dial with a hand at the positions 0 to {count - 1}. It starts upright and turns "
        f"clockwise by {omega:g} radian per position; the tip is always one unit from the centre."
    )
    return drawing.Drawing(figure, alt, {"tips": tips, "angles": angles})


def near_repeats(omega: float = 1.0, limit: int = 1000) -> drawing.Drawing:
    """Draw how far a hand is from its start after each number of steps, with the record lows."""
    offsets = np.arange(1, limit + 1)
    distance = 2 * np.abs(np.sin(offsets * omega / 2))
    lowest = np.minimum.accumulate(distance)
    records = offsets[distance == lowest]
    with drawing.canvas(width=5.2, height=3.4) as (figure, ax):
        ax.loglog(offsets, distance, ".", color=drawing.PADDING, markersize=3)
        ax.loglog(records, distance[records - 1], "o", color=drawing.ACCENT)
        for before, record in pairwise(records):
            crowded = record < 1.5 * before  # two labels side by side would overlap
            ax.annotate(
                str(record),
                (record, distance[record - 1]),
                textcoords="offset points",
                xytext=(5, -9) if crowded else (-7, -9),
                ha="left" if crowded else "right",
            )
        ax.set(xlabel="offset (positions)", ylabel="distance from the start", ylim=(1e-5, 5))
        ax.set_title("One hand nearly repeats, ever more closely")
    alt = (
        f"Distance between a hand and itself some positions later, up to {limit}. The closest "
        f"returns so far come at the offsets {', '.join(map(str, records))}; the last is "
        f"{distance[records[-1] - 1]:.1e} away."
    )
    return drawing.Drawing(
        figure, alt, {"offsets": offsets, "distance": distance, "records": records}
    )


def counter_and_waves(bits: int = 4) -> drawing.Drawing:
    """Draw the bits of 0 … 2**bits − 1 beside waves of the wavelengths 2, 4, 8, …."""
    positions = np.arange(2**bits)
    digits = positions[:, np.newaxis] // 2 ** np.arange(bits) % 2
    lengths = 2.0 ** np.arange(1, bits + 1)
    waves = -np.sin(2 * np.pi * (positions[:, np.newaxis] + 0.5) / lengths)
    with drawing.canvas(width=5.0, height=4.2, columns=2) as (figure, (left, right)):
        left.imshow(digits * 2 - 1, cmap=drawing.DIVERGING, vmin=-2, vmax=2, aspect="auto")
        drawing.annotate_cells(left, digits, "{:d}")
        right.imshow(waves, cmap=drawing.DIVERGING, vmin=-2, vmax=2, aspect="auto")
        for ax, title in ((left, "Bits flip"), (right, "Waves swing")):
            ax.set_title(title)
            ax.set_xticks(range(bits), [f"{length:.0f}" for length in lengths])
            ax.set_xlabel("repeats after … positions")
            ax.set_yticks(positions[::2])
        left.set_ylabel("position")
    alt = (
        f"Left, the {bits} binary digits of 0 to {2**bits - 1}, lowest digit first; right, waves "
        f"with wavelengths {', '.join(f'{length:.0f}' for length in lengths)}. Wherever a bit is 1 "
        f"its wave is positive, wherever it is 0 the wave is negative."
    )
    return drawing.Drawing(figure, alt, {"bits": digits, "waves": waves})


def clocks(position: float, d_model: int = 6, base: float = 10000.0) -> drawing.Drawing:
    """Draw the hands of one position and, under them, the row of the table they spell."""
    omega = frequencies(d_model, base)
    row = sinusoidal_encoding([position], d_model, base=base)[0]
    with drawing.canvas(width=5.0, height=3.0) as (figure, ax):
        ax.remove()
        grid = figure.add_gridspec(2, len(omega), height_ratios=[4, 1])
        for pair, speed in enumerate(omega):
            dial = figure.add_subplot(grid[0, pair])
            _clock(dial, position * speed)
            dial.set_title(f"pair {pair}", fontsize=10)
        cells = figure.add_subplot(grid[1, :])
        cells.imshow(row[np.newaxis], cmap=drawing.DIVERGING, vmin=-1.3, vmax=1.3, aspect="auto")
        drawing.annotate_cells(cells, row[np.newaxis])
        names = [f"{name} {pair}" for pair in range(len(omega)) for name in ("sin", "cos")]
        cells.set_xticks(range(d_model), names[:d_model])
        cells.set_yticks([])
        figure.suptitle(f"Position {position:g}", fontweight="bold", fontsize=11)
    turns = ", ".join(f"{position * speed / (2 * np.pi):.3g}" for speed in omega)
    alt = (
        f"Position {position:g}, d_model {d_model}: hands that have made {turns} turns. The row "
        f"reads {', '.join(f'{value:.2f}' for value in row)}."
    )
    return drawing.Drawing(figure, alt, {"row": row, "angles": position * omega})


def heat_map(length: int = 100, d_model: int = 64) -> drawing.Drawing:
    """Draw the whole table, one row a position."""
    table = sinusoidal_encoding(length, d_model)
    with drawing.canvas(width=5.4, height=3.8) as (figure, ax):
        image = ax.imshow(
            table, cmap=drawing.DIVERGING, vmin=-1, vmax=1, aspect="auto", interpolation="nearest"
        )
        figure.colorbar(image, ax=ax, label="value", ticks=[-1, 0, 1])
        ax.set(xlabel="dimension (column)", ylabel="position (row)")
        ax.set_title("Left columns count fast, right columns count slowly")
    changes = np.sum(np.diff(np.sign(table[:, 0::2]), axis=0) != 0, axis=0)
    alt = (
        f"Heat map of a table of {length} positions and {d_model} columns. The leftmost columns "
        f"change colour every few rows; to the right the stripes grow longer until the columns "
        f"keep one colour over all {length} rows."
    )
    return drawing.Drawing(figure, alt, {"table": table, "sign_changes": changes})


def pair_wave(pair: int, d_model: int = 64, length: int = 200) -> drawing.Drawing:
    """Draw the sine and the cosine of one pair over the positions, with its wavelength."""
    if not 0 <= pair < d_model // 2:
        raise ValueError(f"pair must be from 0 to {d_model // 2 - 1}, got {pair}")
    positions = np.linspace(0, length, 1001)
    omega, wavelength = frequencies(d_model)[pair], wavelengths(d_model)[pair]
    sine, cosine = np.sin(positions * omega), np.cos(positions * omega)
    with drawing.canvas(width=5.2, height=2.9) as (figure, ax):
        ax.plot(positions, sine, color=drawing.SINE, label=f"sin, column {2 * pair}")
        ax.plot(positions, cosine, color=drawing.COSINE, label=f"cos, column {2 * pair + 1}")
        if wavelength <= length:
            ax.axvline(wavelength, color=drawing.INK, ls=":", lw=1.4)
        ax.set(xlabel="position", ylim=(-1.15, 1.15), xlim=(0, length))
        ax.set_yticks([-1, 0, 1])
        ax.set_title(f"Pair {pair} turns once in {wavelength:,.1f} positions")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2)
    alt = (
        f"Sine and cosine of pair {pair} of a table with d_model {d_model}, positions 0 to "
        f"{length}: one turn takes {wavelength:,.1f} positions, so {length / wavelength:.3g} turns "
        f"are seen."
    )
    return drawing.Drawing(
        figure,
        alt,
        {"positions": positions, "sine": sine, "cosine": cosine, "wavelength": wavelength},
    )


def wavelength_range(
    widths: Sequence[int] = (4, 6, 64, 512), base: float = 10000.0
) -> drawing.Drawing:
    """Draw the wavelengths of several widths against the pair's place, with the quoted limit."""
    limit = 2 * np.pi * base
    styles = ((drawing.SINE, "s"), (drawing.ACCENT, "D"), (drawing.REAL, "^"), (drawing.INK, "."))
    longest = np.array([wavelengths(width, base)[-1] for width in widths])
    with drawing.canvas(width=5.2, height=3.6) as (figure, ax):
        for width, (color, marker) in zip(widths, styles, strict=False):
            share = np.arange(width // 2) * 2 / width
            thin = max(1, width // 48)
            lengths = wavelengths(width, base)
            kept = np.r_[np.arange(0, len(lengths), thin), len(lengths) - 1]
            size = 4 if width > 16 else 7
            ax.semilogy(
                share[kept],
                lengths[kept],
                marker,
                color=color,
                markersize=size,
                label=str(width),
            )
        ax.axhline(limit, color=drawing.INK, ls="--", lw=1)
        ax.text(0, limit * 1.25, "2π · base: never reached", va="bottom")
        ax.set(xlabel="exponent 2i / d_model", ylabel="wavelength (positions)", xlim=(-0.03, 1.03))
        ax.set_ylim(4, limit * 4)
        ax.legend(title="d_model", loc="lower right")
        ax.set_title("The longest wave stops short of 2π · base")
    pairs = ", ".join(f"{w}: {value:,.0f}" for w, value in zip(widths, longest, strict=True))
    alt = (
        f"Wavelengths on a logarithmic axis rise from 6.28 along one straight line for every "
        f"d_model and end below {limit:,.0f}. Longest by d_model: {pairs}."
    )
    return drawing.Drawing(figure, alt, {"longest": longest, "limit": np.array(limit)})


def verdicts(
    passed: ArrayLike, tables: Sequence[str], tests: Sequence[str], title: str
) -> drawing.Drawing:
    """Draw which table passes which test: one row a table, one column a test."""
    passed = np.asarray(passed, dtype=bool)
    with drawing.canvas(width=5.2, height=0.42 * len(tables) + 1.2) as (figure, ax):
        ax.imshow(np.where(passed, -0.55, 0.55), cmap="PuOr_r", vmin=-1.6, vmax=1, aspect="auto")
        for (row, column), ok in np.ndenumerate(passed):
            ax.text(
                column,
                row,
                "pass" if ok else "FAIL",
                ha="center",
                va="center",
                fontweight="normal" if ok else "bold",
                color=drawing.INK,
            )
        ax.set_xticks(range(len(tests)), [test.replace(" ", "\n") for test in tests])
        ax.xaxis.tick_top()
        ax.set_yticks(range(len(tables)), list(tables))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_title(title)
    rows = []
    for name, row in zip(tables, passed, strict=True):
        failed = [test for test, ok in zip(tests, row, strict=True) if not ok]
        rows.append(f"{' '.join(name.split())} fails {', '.join(failed) if failed else 'none'}")
    alt = f"Tests {', '.join(tests)} against {len(tables)} tables: {'; '.join(rows)}."
    return drawing.Drawing(figure, alt, {"passed": passed})


def difference(printed: ArrayLike, computed: ArrayLike) -> drawing.Drawing:
    """Draw printed minus computed, number by number, for two tables that differ."""
    gap = np.asarray(printed, dtype=float) - np.asarray(computed, dtype=float)
    shown = np.round(gap, 3) + 0.0
    worst = tuple(int(i) for i in np.unravel_index(np.abs(gap).argmax(), gap.shape))
    limit = np.abs(gap).max()
    off = np.flatnonzero(np.abs(gap).max(0) > 1e-6)
    with drawing.canvas(width=5.2, height=2.6) as (figure, ax):
        ax.imshow(gap, cmap=drawing.DIVERGING, vmin=-limit, vmax=limit, aspect="auto")
        drawing.annotate_cells(ax, shown, "{:.3f}")
        ax.set(xlabel="dimension (column)", ylabel="position (row)")
        ax.set_yticks(range(len(gap)))
        ax.set_title(f"Printed minus computed: columns {off[0]} to {off[-1]} are off")
    alt = (
        f"Differences between the printed and the computed table, largest {limit:.3f} in row "
        f"{worst[0]}, column {worst[1]}. Columns without any difference: "
        f"{', '.join(str(c) for c in range(gap.shape[1]) if c not in off)}."
    )
    return drawing.Drawing(figure, alt, {"difference": gap})


def distance_by_offset(
    widths: Sequence[int] = (2, 4, 64), limit: int = 5000, base: float = 10000.0
) -> drawing.Drawing:
    """Draw the distance between two encodings against their offset, for several widths."""
    offsets = np.arange(1, limit)
    distances = np.array(
        [
            np.sqrt((2 - 2 * np.cos(offsets[:, np.newaxis] * frequencies(width, base))).sum(1))
            for width in widths
        ]
    )
    shades = (drawing.PADDING, drawing.ACCENT, drawing.REAL)
    with drawing.canvas(width=5.2, height=3.6) as (figure, ax):
        for width, distance, shade in zip(widths, distances, shades, strict=False):
            ax.semilogy(offsets, distance, ".", markersize=1.5, color=shade)
            best = distance.argmin()
            ax.semilogy(
                offsets[best],
                distance[best],
                "o",
                color=shade,
                mec=drawing.INK,
                markersize=8,
                label=f"{width}",
            )
        ax.set(xlabel="offset (positions)", ylabel="distance of two codes")
        ax.set_ylim(2e-5, 30)
        ax.legend(title="d_model", loc="lower right", ncols=3)
        ax.set_title("More pairs keep every code at a distance")
    lows = "; ".join(
        f"d_model {width}: {distance.min():.2g} at offset {offsets[distance.argmin()]}"
        for width, distance in zip(widths, distances, strict=True)
    )
    alt = f"Distance of two encodings against their offset, 1 to {limit - 1}. Smallest: {lows}."
    return drawing.Drawing(
        figure, alt, {"offsets": offsets, "distances": distances, "nearest": distances.min(1)}
    )


def norms(widths: ArrayLike, lengths: Mapping[str, ArrayLike]) -> drawing.Drawing:
    """Draw mean vector lengths against the width, one line for each kind of vector."""
    widths = np.asarray(widths)
    values = {name: np.asarray(value, dtype=float) for name, value in lengths.items()}
    styles = ((drawing.PADDING, "o--"), (drawing.COSINE, "s-"), (drawing.SINE, "^-"))
    with drawing.canvas(width=5.2, height=3.4) as (figure, ax):
        for (name, value), (color, style) in zip(values.items(), styles, strict=False):
            ax.loglog(widths, value, style, color=color, base=2, label=name)
        ax.set_xticks(widths, [str(width) for width in widths])
        ticks = 2.0 ** np.arange(0, 6)
        ax.set_yticks(ticks, [f"{tick:.0f}" for tick in ticks])
        ax.minorticks_off()
        ax.set(xlabel="d_model", ylabel="mean length of a row")
        ax.legend()
        ax.set_title("√d_model lifts the word above its position")
    ends = "; ".join(f"{name}: {value[-1]:.2f}" for name, value in values.items())
    alt = f"Mean lengths of rows for d_model {widths[0]} to {widths[-1]}. At the end: {ends}."
    return drawing.Drawing(figure, alt, values)


def recovery(words: ArrayLike, shares: Mapping[str, ArrayLike], d_model: int) -> drawing.Drawing:
    """Draw which share of held-out sums gives back its word and its position (runs × words)."""
    words = np.asarray(words)
    values = {name: np.asarray(share, dtype=float) for name, share in shares.items()}
    styles = ((drawing.SINE, "o-"), (drawing.COSINE, "s-"), (drawing.REAL, "^--"))
    with drawing.canvas(width=5.2, height=3.4) as (figure, ax):
        for (name, share), (color, style) in zip(values.items(), styles, strict=False):
            ax.semilogx(words, share.mean(0), style, color=color, base=2, label=name)
            ax.fill_between(words, share.min(0), share.max(0), color=color, alpha=0.25, lw=0)
        ax.set_xticks(words, [str(count) for count in words])
        ax.minorticks_off()
        ax.set(xlabel="number of words", ylabel="share named right", ylim=(0, 1.08))
        ax.axvline(d_model, color=drawing.INK, ls=":", lw=1)
        ax.text(d_model * 1.05, 0.08, f"d_model = {d_model}")
        ax.legend(loc="lower left")
        ax.set_title("With many words, the position blurs")
    ends = "; ".join(
        f"{name}: {share.mean(0)[0]:.2f} with {words[0]} words, {share.mean(0)[-1]:.2f} with "
        f"{words[-1]}"
        for name, share in values.items()
    )
    alt = f"Share of held-out sums of a word and a position whose part was named right. {ends}."
    return drawing.Drawing(figure, alt, values)


def odd_width(d_model: int = 5, length: int = 8) -> drawing.Drawing:
    """Draw an odd-width table with the place where the missing cosine would stand."""
    table = sinusoidal_encoding(length, d_model)
    with drawing.canvas(width=5.2, height=3.4) as (figure, ax):
        ax.imshow(table, cmap=drawing.DIVERGING, vmin=-1.3, vmax=1.3, aspect="auto")
        drawing.annotate_cells(ax, table)
        ax.axvspan(d_model - 0.5, d_model + 0.5, facecolor="none", edgecolor=drawing.INK, hatch="/")
        ax.set_xlim(-0.5, d_model + 0.5)
        names = [f"{name} {i}" for i in range((d_model + 1) // 2) for name in ("sin", "cos")]
        ax.set_xticks(range(d_model + 1), [*names[:d_model], "none"])
        ax.set(ylabel="position (row)", title="The last sine has no cosine beside it")
    alt = (
        f"A table of {length} positions and {d_model} columns: "
        f"{d_model // 2} pairs of sine and cosine, then one sine alone."
    )
    return drawing.Drawing(figure, alt, {"table": table})


def layouts(length: int = 24, d_model: int = 16) -> drawing.Drawing:
    """Draw one table in both column orders."""
    tables: dict[str, NDArray[Any]] = {
        layout: sinusoidal_encoding(length, d_model, layout=layout)
        for layout in ("interleaved", "split")
    }
    with drawing.canvas(width=5.4, height=3.2, columns=2, sharey=True) as (figure, axes):
        for ax, (layout, table) in zip(axes, tables.items(), strict=True):
            ax.imshow(table, cmap=drawing.DIVERGING, vmin=-1, vmax=1, aspect="auto")
            ax.set(xlabel="dimension (column)")
            ax.set_title(
                {"interleaved": "sin, cos, sin, cos …", "split": "sines | cosines"}[layout]
            )
        axes[1].axvline(d_model / 2 - 0.5, color=drawing.INK, lw=1.5)
        axes[0].set_ylabel("position (row)")
    alt = (
        f"The same {d_model} columns twice: on the left sines and cosines alternate, on the right "
        f"the {d_model // 2} sines come first and the {d_model // 2} cosines after them."
    )
    return drawing.Drawing(figure, alt, tables)
