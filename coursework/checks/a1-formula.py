"""Assignment A1: what each task asks, on which inputs, for how many points."""

import numpy as np

from posenc import rotary, sinusoidal
from posenc.bias import clipped_relative_positions
from posenc_grader.tasks import Aspect, Mistake, Task

FORMULA = "chapters/02-the-formula.ipynb"
SHAPES = "chapters/05-shape-pitfalls.ipynb"
RELATIVE = "chapters/03-relative-position.ipynb"


def width(rng: np.random.Generator, odd: bool = False) -> int:
    """Draw a small width."""
    return 2 * int(rng.integers(3, 12)) + odd


def encoding(positions, d_model, exponent=lambda i, d_model: 2 * i / d_model):
    """Give the interleaved code for even widths, with any exponent of pair i: for mistakes."""
    i = np.arange(d_model // 2)
    angle = np.asarray(positions)[..., None] / 10000.0 ** exponent(i, d_model)
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(*np.shape(positions), d_model)


def column_as_pair(positions, d_model):
    """Use the column where the formula has the pair index."""
    column = np.arange(d_model)
    angle = np.asarray(positions)[..., None] / 10000.0 ** (2 * column / d_model)
    return np.where(column % 2, np.cos(angle), np.sin(angle))


def swapped(table):
    """Exchange the sines and cosines."""
    return table.reshape(*table.shape[:-1], -1, 2)[..., ::-1].reshape(table.shape)


def to_split(table):
    """Put all sines before all cosines."""
    return np.concatenate([table[..., 0::2], table[..., 1::2]], axis=-1)


DOUBLED = (
    "The exponent is twice too large. `np.arange(0, d_model, 2)` holds 2i already; or you raised "
    "to 4i / d_model."
)
FORMULA_MISTAKES = [
    Mistake(
        column_as_pair,
        "The two columns of a pair have different frequencies: the exponent uses the column where "
        "the formula has the pair index i.",
    ),
    Mistake(lambda p, d: encoding(p, d, lambda i, d: 4 * i / d), DOUBLED),
    Mistake(
        lambda p, d: encoding(p, d, lambda i, d: -2 * i / d),
        "The angle grows with i: you multiplied by 10000^(2i/d_model) where the formula divides.",
    ),
    Mistake(
        lambda p, d: encoding(p, d, lambda i, d: i / max(d // 2 - 1, 1)),
        "The frequencies are spaced by d_model/2 − 1, as some libraries do; the formula divides by "
        "d_model.",
    ),
    Mistake(lambda p, d: swapped(encoding(p, d)), "Sine and cosine are exchanged."),
    Mistake(
        lambda p, d: to_split(encoding(p, d)),
        "The sines stand before the cosines; asked is sine, cosine, sine, cosine, …",
    ),
    Mistake(lambda p, d: encoding(np.asarray(p) + 1, d), "Positions count from 0; you added 1."),
]


def shift_split(table, k):
    """Move a table in the split layout with posenc's matrix."""
    return table @ sinusoidal.shift_matrix(k, table.shape[1], layout="split").T


def shift_cases(rng, offsets):
    """Make split tables of unknown positions."""
    d_model = width(rng)
    tables = [
        sinusoidal.sinusoidal_encoding(rng.uniform(0, 90, 3), d_model, layout="split")
        for _ in offsets
    ]
    return list(zip(tables, offsets, strict=True))


def offset_between(first, second):
    """Give the signed offset from the fastest pair."""
    turn = complex(second[1], second[0]) * complex(first[1], first[0]).conjugate()
    return float(np.angle(turn))


def offset_cases(rng, sign):
    """Make pairs of codes a known, signed distance apart."""
    d_model = width(rng)
    start = rng.uniform(0, 200, 4)
    codes = [
        sinusoidal.sinusoidal_encoding(np.array([p, p + sign * d]), d_model)
        for p, d in zip(start, rng.uniform(0.2, 2.9, 4), strict=True)
    ]
    return [tuple(pair) for pair in codes]


def similarity(length, d_model):
    """Give the cosine similarities from the table itself."""
    table = sinusoidal.sinusoidal_encoding(length, d_model)
    return table @ table.T / (d_model / 2)


def relative_rows(query_length, key_length, max_distance):
    """Give the rows of a table of relative positions."""
    return clipped_relative_positions(query_length, key_length, max_distance) + max_distance


def rotary_score(query, key, m, n, pairing="interleaved"):
    """Give the rotary score of one query and one key."""
    query, key = (
        rotary.apply_rotary(x[None], [p], pairing=pairing)[0] for x, p in ((query, m), (key, n))
    )
    return float(query @ key)


def rotary_cases(rng, place):
    """Make queries and keys at positions drawn by `place`."""
    d = width(rng)
    return [(rng.normal(size=d), rng.normal(size=d), *place(rng)) for _ in range(3)]


ROTARY_MISTAKES = [
    Mistake(
        lambda q, k, m, n: rotary_score(q, k, n, m),
        "The distance has the wrong sign: one of the two was turned clockwise, or m and n are "
        "exchanged.",
    ),
    Mistake(
        lambda q, k, m, n: rotary_score(q, k, m, -n),
        "The score depends on m + n: query and key were turned in opposite directions. Did you "
        "forget to conjugate?",
    ),
    Mistake(
        lambda q, k, m, n: rotary_score(q, k, m, n, "half"),
        "Entry i was paired with entry i + head_dim/2; asked are the pairs (2i, 2i+1).",
    ),
    Mistake(lambda q, k, m, n: float(q @ k), "This is the plain dot product: nothing was turned."),
]

TASKS = [
    Task(
        cell="a1-wavelengths-check",
        answer="wavelengths",
        title="1 How long a turn takes",
        objective="compute the wavelength of every pair",
        section=f"{FORMULA}#The slowest hand is not as slow as they say",
        exercise="ex-waves-frequencies",
        aspects=[
            Aspect(
                "even widths",
                1,
                sinusoidal.wavelengths,
                lambda rng: [(width(rng),) for _ in range(3)],
                [
                    Mistake(sinusoidal.frequencies, "These are frequencies, not wavelengths."),
                    Mistake(
                        lambda d: 1 / sinusoidal.frequencies(d), "A turn is 2π radians, not 1."
                    ),
                    Mistake(lambda d: 2 * np.pi * 1e4 ** (2 * np.arange(0, d, 2) / d), DOUBLED),
                    Mistake(
                        lambda d: 2 * np.pi * 10000 ** (np.arange(d) / d),
                        "One wavelength a pair is asked, not one a column.",
                    ),
                ],
            ),
            Aspect(
                "odd widths", 1, sinusoidal.wavelengths, lambda rng: [(width(rng, True),), (1,)]
            ),
            Aspect(
                "another base",
                1,
                sinusoidal.wavelengths,
                lambda rng: [(width(rng), float(rng.uniform(2, 1e6))) for _ in range(2)],
                [Mistake(lambda d, base: sinusoidal.wavelengths(d), "`base` is not used.")],
            ),
        ],
    ),
    Task(
        cell="a1-slow-pair-check",
        answer="first_slow_pair",
        title="2 The first hand that never comes round",
        objective="tell which pairs finish a turn within a text",
        section=f"{FORMULA}#The slowest hand is not as slow as they say",
        exercise="ex-waves-finished",
        aspects=[
            Aspect(
                "texts in which some pairs come round",
                1,
                lambda d, length: int(np.sum(sinusoidal.wavelengths(d) <= length)),
                lambda rng: [(2 * width(rng), int(10 ** rng.uniform(1.3, 3))) for _ in range(6)],
                [
                    Mistake(
                        lambda d, length: 2 * int(np.sum(sinusoidal.wavelengths(d) <= length)),
                        "This is a column; a pair has two.",
                    ),
                    Mistake(
                        lambda d, length: int(np.sum(1 / sinusoidal.frequencies(d) <= length)),
                        "A turn is 2π radians, not 1.",
                    ),
                ],
            ),
            Aspect(
                "texts in which all pairs do, or none",
                1,
                lambda d, length: int(np.sum(sinusoidal.wavelengths(d) <= length)),
                lambda rng: [(width(rng), 10**7), (width(rng), int(rng.integers(2, 6)))],
            ),
        ],
    ),
    Task(
        cell="a1-encoding-check",
        answer="encoding",
        title="3 The code of any position",
        objective="implement the formula with arrays",
        section=f"{FORMULA}#The formula, one line of code a step",
        exercise="ex-waves-odd",
        aspects=[
            Aspect(
                "whole positions, even widths",
                2,
                sinusoidal.sinusoidal_encoding,
                lambda rng: [(rng.integers(0, 5000, 5), width(rng)) for _ in range(3)],
                FORMULA_MISTAKES,
            ),
            Aspect(
                "negative and fractional positions",
                1,
                sinusoidal.sinusoidal_encoding,
                lambda rng: [(rng.uniform(-50, 50, 5), width(rng))],
                FORMULA_MISTAKES,
            ),
            Aspect(
                "odd widths",
                1,
                sinusoidal.sinusoidal_encoding,
                lambda rng: [(rng.integers(0, 50, 4), width(rng, True)), (np.array([3]), 1)],
            ),
            Aspect(
                "the result is float64, whatever the positions are",
                1,
                sinusoidal.sinusoidal_encoding,
                lambda rng: [(rng.integers(1, 50, 4), width(rng))],
                view=lambda table: str(np.asarray(table).dtype),
            ),
        ],
    ),
    Task(
        cell="a1-any-shape-check",
        answer="encoding_of",
        title="4 Positions of any shape",
        objective="give every sentence of a batch its own positions",
        section=f"{FORMULA}#The whole table at once",
        exercise="ex-waves-table",
        aspects=[
            Aspect(
                "one axis",
                1,
                sinusoidal.sinusoidal_encoding,
                lambda rng: [(rng.integers(0, 500, 5), width(rng))],
                FORMULA_MISTAKES,
            ),
            Aspect(
                "a batch of sentences",
                2,
                sinusoidal.sinusoidal_encoding,
                lambda rng: [(rng.integers(0, 500, (2, 5)), width(rng)) for _ in range(2)],
                [
                    Mistake(
                        lambda p, d: np.stack([encoding(p[0], d)] * len(p)),
                        "Every sentence got the positions of the first one.",
                    ),
                    Mistake(
                        lambda p, d: np.stack([encoding(np.arange(p.shape[1]), d)] * len(p)),
                        "The positions were counted anew; they are given.",
                    ),
                    *FORMULA_MISTAKES,
                ],
            ),
            Aspect(
                "three axes",
                1,
                sinusoidal.sinusoidal_encoding,
                lambda rng: [(rng.integers(0, 500, (2, 3, 5)), width(rng))],
            ),
        ],
    ),
    Task(
        cell="a1-refuse-check",
        answer="checked_encoding",
        title="5 Refuse what makes no sense",
        objective="stop wrong arguments at the border",
        section=f"{SHAPES}#One line of contract shuts out a family of faults",
        exercise="ex-shapes-predict",
        aspects=[
            Aspect(
                "right arguments",
                1,
                sinusoidal.sinusoidal_encoding,
                lambda rng: [(rng.uniform(-50, 50, 5), width(rng)), (np.array([1.0]), 2)],
                FORMULA_MISTAKES,
            ),
            Aspect(
                "positions that are not finite",
                1,
                cases=lambda rng: [
                    (np.append(rng.uniform(0, 9, 3), bad), width(rng))
                    for bad in (np.nan, np.inf, -np.inf)
                ],
                raises=ValueError,
            ),
            Aspect(
                "widths that are odd or too small",
                1,
                cases=lambda rng: [
                    (rng.uniform(0, 9, 3), bad) for bad in (0, -width(rng), 1, width(rng, True))
                ],
                raises=ValueError,
            ),
            Aspect(
                "widths that are no integers",
                1,
                cases=lambda rng: [
                    (rng.uniform(0, 9, 3), bad) for bad in (float(width(rng)), "8", None, True)
                ],
                raises=TypeError,
            ),
        ],
    ),
    Task(
        cell="a1-shift-check",
        answer="shift_split",
        title="6 Move a table in the other layout",
        objective="move codes by an offset with the angle-addition formulas",
        section=f"{RELATIVE}#One matrix moves every position",
        exercise="ex-relative-move",
        aspects=[
            Aspect(
                "forwards",
                2,
                shift_split,
                lambda rng: shift_cases(rng, [int(k) for k in rng.integers(1, 60, 3)]),
                [
                    Mistake(
                        lambda table, k: shift_split(table, -k),
                        "The table moves backwards: the two sines of the rotation have exchanged "
                        "signs.",
                    ),
                    Mistake(
                        lambda t, k: t @ sinusoidal.shift_matrix(k, t.shape[1]).T,
                        "The table was taken for an interleaved one; here the sines fill the left "
                        "half.",
                    ),
                    Mistake(
                        lambda table, k: np.roll(table, -k, 0), "Rows were moved, not positions."
                    ),
                ],
            ),
            Aspect(
                "backwards and by fractions",
                1,
                shift_split,
                lambda rng: shift_cases(rng, [-int(rng.integers(1, 60)), float(rng.uniform(0, 3))]),
            ),
            Aspect(
                "a single pair",
                1,
                shift_split,
                lambda rng: [
                    (
                        sinusoidal.sinusoidal_encoding(rng.uniform(0, 9, 3), 2),
                        int(rng.integers(1, 9)),
                    )
                ],
            ),
        ],
    ),
    Task(
        cell="a1-offset-check",
        answer="offset_between",
        title="7 Read the offset between two codes",
        objective="recover a signed offset from two codes",
        section=f"{RELATIVE}#The dot product knows how far, not which way",
        exercise="ex-relative-block",
        aspects=[
            Aspect(
                "the second lies after the first",
                2,
                offset_between,
                lambda rng: offset_cases(rng, +1),
                [
                    Mistake(
                        lambda a, b: -offset_between(a, b),
                        "The sign is reversed: asked is second minus first.",
                    ),
                    Mistake(
                        lambda a, b: offset_between(a[::-1], b[::-1]),
                        "Sine and cosine are exchanged: even columns hold sines.",
                    ),
                ],
                tolerance=1e-6,
            ),
            Aspect(
                "the second lies before the first",
                2,
                offset_between,
                lambda rng: offset_cases(rng, -1),
                [
                    Mistake(
                        lambda a, b: abs(offset_between(a, b)),
                        "The distance is right and its sign is lost: the dot product alone cannot "
                        "tell before from after.",
                    ),
                ],
                tolerance=1e-6,
            ),
        ],
    ),
    Task(
        cell="a1-similarity-check",
        answer="similarity",
        title="8 All similarities without a table",
        objective="use that similarity depends on distance alone",
        section=f"{RELATIVE}#The dot product knows how far, not which way",
        exercise="ex-relative-dot",
        aspects=[
            Aspect(
                "all pairs of positions",
                3,
                similarity,
                lambda rng: [(int(rng.integers(5, 20)), width(rng)) for _ in range(3)],
                [
                    Mistake(
                        lambda length, d: similarity(length, d) * d / 2,
                        "These are dot products: divide by a code's squared length, d_model/2.",
                    ),
                    Mistake(
                        lambda length, d: similarity(length, d) / 2,
                        "Divided by d_model, but a code has d_model/2 pairs.",
                    ),
                    Mistake(
                        lambda length, d: similarity(length, d)[0],
                        "This is one row; asked are all positions with all.",
                    ),
                ],
            ),
        ],
    ),
    Task(
        cell="a1-relative-check",
        answer="relative_rows",
        title="9 Which row of a relative table",
        objective="index a table of relative positions, clipped and aligned",
        section=f"{RELATIVE}#From position in the input to position in the score",
        exercise="ex-relative-alibi",
        aspects=[
            Aspect(
                "as many queries as keys",
                1,
                relative_rows,
                lambda rng: [(n, n, 2) for n in map(int, rng.integers(5, 9, 2))],
                [
                    Mistake(
                        lambda q, k, m: relative_rows(q, k, m).T,
                        "The sign is reversed: relative position is key − query.",
                    ),
                    Mistake(
                        lambda q, k, m: relative_rows(q, k, m) - m,
                        "These are relative positions; rows count from 0.",
                    ),
                    Mistake(
                        lambda q, k, m: relative_rows(q, k, q + k) - q - k + m,
                        "Far positions run out of the table: clip before you add.",
                    ),
                ],
            ),
            Aspect(
                "fewer queries than keys",
                2,
                relative_rows,
                lambda rng: [
                    (int(rng.integers(2, 5)), int(rng.integers(6, 9)), 3) for _ in range(3)
                ],
                [
                    Mistake(
                        lambda q, k, m: relative_rows(k, k, m)[:q],
                        "The first query was put at the first key; the last one stands at the last "
                        "key.",
                    ),
                ],
            ),
        ],
    ),
    Task(
        cell="a1-rotary-check",
        answer="rotary_score",
        title="10 A score that knows the distance",
        objective="compute a rotary score",
        section=f"{RELATIVE}#RoPE: turn queries and keys by their own position",
        exercise="ex-relative-rope",
        aspects=[
            Aspect(
                "two different positions",
                3,
                rotary_score,
                lambda rng: rotary_cases(
                    rng, lambda r: (int(r.integers(20, 40)), int(r.integers(20)))
                ),
                ROTARY_MISTAKES,
                tolerance=1e-7,
            ),
            Aspect(
                "positions far out, and equal ones",
                1,
                rotary_score,
                lambda rng: [
                    *rotary_cases(rng, lambda r: (1000 + int(r.integers(9)), 1000)),
                    *rotary_cases(rng, lambda r: (7, 7)),
                ],
                tolerance=1e-7,
            ),
        ],
    ),
]
