"""Checks for the exercises on fixed and learned encodings."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.checks.exercise import Exercise, Mistake
from posenc.sinusoidal import sinusoidal_encoding

Array = NDArray[Any]
_rng = np.random.default_rng(6)


# --- Parameters of an image model's table ---------------------------------------------------------
def _patches(image: int, patch: int) -> int:
    return (image // patch) ** 2


count_patches = Exercise(
    lambda image, patch, d_model: (_patches(image, patch) + 1) * d_model,
    cases=[(224, 16, 768), (96, 8, 20), (60, 20, 7)],
    mistakes=[
        Mistake(
            lambda image, patch, d_model: _patches(image, patch) * d_model,
            "One row is missing: the class token stands before the patches and has a position too.",
        ),
        Mistake(
            lambda image, patch, d_model: (image // patch + 1) * d_model,
            "You counted the patches of one row of the image. They form a square grid.",
        ),
        Mistake(
            lambda image, patch, d_model: _patches(image, patch) + 1,
            "That is the number of rows. Each holds d_model numbers.",
        ),
        Mistake(
            lambda image, patch, d_model: (image**2 + 1) * d_model,
            "You gave every pixel a row. A token is a patch of patch × patch pixels.",
        ),
    ],
    praise="Right: one row for each patch and one for the class token.",
)

# --- How long a text fits -------------------------------------------------------------------------
longest_text = Exercise(
    lambda rows, first: rows - first,
    cases=[(514, 2), (512, 0), (40, 3)],
    mistakes=[
        Mistake(
            lambda rows, first: rows,
            "The rows before the first token's are there, but no token of the text uses them.",
        ),
        Mistake(
            lambda rows, first: rows - first - 1,
            "One too few: the rows first … rows − 1 are rows − first of them.",
        ),
        Mistake(
            lambda rows, first: rows - first + 1,
            "One too many: the last row has the number rows − 1.",
        ),
        Mistake(
            lambda rows, first: rows + first,
            "Counting from a later row leaves fewer rows for the text, not more.",
        ),
    ],
    praise="Right: 514 rows counted from 2 serve 512 tokens, and the 513th raises an error.",
)


# --- Gradient of a lookup -------------------------------------------------------------------------
def _scatter(positions: Array, grad: Array, rows: int) -> Array:
    total = np.zeros((rows, grad.shape[-1]))
    np.add.at(total, positions, grad)
    return total


def _overwrite(positions: Array, grad: Array, rows: int) -> Array:
    total = np.zeros((rows, grad.shape[-1]))
    total[positions] = grad
    return total


def _average(positions: Array, grad: Array, rows: int) -> Array:
    counts = np.bincount(positions.ravel(), minlength=rows)
    return _scatter(positions, grad, rows) / np.maximum(counts, 1)[:, np.newaxis]


_PACKED = np.array([[0, 1, 2, 0, 1], [0, 1, 0, 1, 2]])

table_gradient = Exercise(
    _scatter,
    cases=[
        (_PACKED, _rng.normal(size=(2, 5, 3)), 7),
        (np.array([[3, 3, 0]]), _rng.normal(size=(1, 3, 2)), 6),
    ],
    mistakes=[
        Mistake(
            _overwrite,
            "Only the last use of each row counted. `total[positions] += grad` reads all rows "
            "first and writes them back once: use `np.add.at`, or a one-hot product.",
        ),
        Mistake(
            _average,
            "You divided by the number of uses. The loss depends on a row once for each use, so "
            "the gradients add up.",
        ),
        Mistake(
            lambda positions, grad, rows: _scatter(positions[0], grad[0], rows),
            "Only the first sequence of the batch reached the table.",
        ),
        Mistake(
            lambda positions, grad, rows: _scatter(
                np.broadcast_to(np.arange(positions.shape[1]), positions.shape), grad, rows
            ),
            "You used the place in the sequence as the position. The positions are given, and "
            "they start again in each packed text.",
        ),
        Mistake(
            lambda positions, grad, rows: grad.sum(axis=0),
            "You summed over the batch and stopped there: the result needs one row for each row "
            "of the table, zero where nothing was looked up.",
        ),
    ],
    praise="Right: what was used twice learns twice, what was not used gets zero.",
)

# --- How often a row is trained -------------------------------------------------------------------
row_visits = Exercise(
    lambda lengths, rows: (np.arange(rows)[:, np.newaxis] < lengths).sum(axis=1),
    cases=[(np.array([3, 5, 5, 2]), 7), (np.array([1, 4]), 4)],
    mistakes=[
        Mistake(
            lambda lengths, rows: (np.arange(rows)[:, np.newaxis] <= lengths).sum(axis=1),
            "Off by one: a text of 3 tokens uses the rows 0, 1 and 2, not row 3.",
        ),
        Mistake(
            lambda lengths, rows: np.bincount(lengths, minlength=rows + 1)[1 : rows + 1],
            "You counted the texts that end at each row. A longer text uses the rows before its "
            "end as well.",
        ),
        Mistake(
            lambda lengths, rows: (np.arange(rows)[:, np.newaxis] >= lengths).sum(axis=1),
            "Upside down: you counted the texts that do not reach the row.",
        ),
        Mistake(
            lambda lengths, rows: np.full(rows, len(lengths)),
            "Not every text reaches every row.",
        ),
    ],
    praise="Right: the last rows of a table see the fewest texts, and some see none.",
)


# --- Stretching by hand ---------------------------------------------------------------------------
def _interpolated(table: Array, where: Array) -> Array:
    rows = np.arange(len(table))
    return np.stack([np.interp(where, rows, column) for column in table.T], axis=1)


def _stretch(table: Array, new_length: int) -> Array:
    return _interpolated(table, np.linspace(0, len(table) - 1, new_length))


stretch_rows = Exercise(
    _stretch,
    cases=[(_rng.normal(size=(4, 3)), 7), (_rng.normal(size=(5, 2)), 3)],
    mistakes=[
        Mistake(
            lambda table, new_length: _interpolated(
                table, np.arange(new_length) * len(table) / new_length
            ),
            "The step is rows / new_length, so the last new row is not the last old one. From "
            "first to last there are rows − 1 steps.",
        ),
        Mistake(
            lambda table, new_length: _interpolated(
                table, (np.arange(new_length) + 0.5) * len(table) / new_length - 0.5
            ),
            "You matched the middles of cells, as image software does. Here both end rows are "
            "to be kept.",
        ),
        Mistake(
            lambda table, new_length: table[
                np.linspace(0, len(table) - 1, new_length).round().astype(int)
            ],
            "You took the nearest old row, so some positions share one. Go along the straight "
            "line between two rows.",
        ),
        Mistake(
            lambda table, new_length: table[np.arange(new_length) % len(table)],
            "You began again at row 0, so two tokens share a position.",
        ),
        Mistake(
            lambda table, new_length: _interpolated(table, np.arange(new_length)),
            "Past its end the table goes on with copies of the last row: nothing was stretched.",
        ),
    ],
    praise="Right, and np.interp did the interpolation, a column at a time.",
)

# --- Telling a sinusoid by its dot products -------------------------------------------------------


def _toeplitz(table: Array) -> bool:
    dots = table @ table.T
    n = len(table)
    return all(bool(np.allclose(np.diagonal(dots, k), dots[0, k])) for k in range(n))


def _unit_rows(seed: int, shape: tuple[int, int]) -> Array:
    rows = np.random.default_rng(seed).normal(size=shape)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


_alternating = np.tile([[1.0, 0.0], [0.0, 1.0]], (4, 1))
_alternating[5] = [0.0, -1.0]  # neighbours stay at right angles; two apart do not agree

offsets_only = Exercise(
    _toeplitz,
    cases=[
        (sinusoidal_encoding(7, 4),),
        (sinusoidal_encoding(7, 6, layout="split"),),
        (sinusoidal_encoding(np.arange(2, 9), 4),),
        (_unit_rows(1, (6, 4)),),
        (_alternating,),
        (np.eye(5),),
        (_rng.normal(size=(5, 3)),),
    ],
    mistakes=[
        Mistake(
            lambda table: bool(np.allclose(table, sinusoidal_encoding(*table.shape))),
            "You compare with one table. Other layouts, another first position and other "
            "frequencies pass the test that was asked for, too.",
        ),
        Mistake(
            lambda table: bool(np.allclose(np.diagonal(table @ table.T), (table[0] ** 2).sum())),
            "You looked at the main diagonal only: rows of equal length pass, whatever their "
            "directions.",
        ),
        Mistake(
            lambda table: bool(np.allclose(table @ table.T, (table @ table.T).T)),
            "Dot products are symmetric for every table, so this is always true.",
        ),
        Mistake(
            lambda table: bool(
                np.allclose(np.diagonal(table @ table.T, 1), table[0] @ table[1])
                and np.allclose(np.diagonal(table @ table.T), (table[0] ** 2).sum())
            ),
            "You looked at neighbours only. Every offset needs one value.",
        ),
    ],
    praise="Right. A table of unrelated unit rows at right angles passes as well: the test says "
    "that only the offset matters, not that near positions are alike.",
)


# --- What to store --------------------------------------------------------------------------------
def _is_formula(array: Array) -> bool:
    return bool(np.allclose(array, sinusoidal_encoding(*array.shape)))


def _drop_if(recognised: Callable[[Array], bool], checkpoint: dict[str, Array]) -> dict[str, Array]:
    kept = dict(checkpoint)
    if "pe" in kept and recognised(kept["pe"]):
        del kept["pe"]
    return kept


_WEIGHT = _rng.normal(size=(3, 2))

drop_the_constant = Exercise(
    lambda checkpoint: _drop_if(_is_formula, checkpoint),
    cases=[
        ({"w": _WEIGHT, "pe": sinusoidal_encoding(7, 4)},),
        ({"w": _WEIGHT, "pe": sinusoidal_encoding(5, 6)},),
        ({"w": _WEIGHT, "pe": _rng.normal(size=(5, 4))},),
        ({"w": _WEIGHT, "pe": sinusoidal_encoding(9, 4) + 0.1 * (np.arange(9) == 8)[:, None]},),
        ({"w": _WEIGHT},),
    ],
    mistakes=[
        Mistake(
            lambda checkpoint: _drop_if(lambda pe: True, checkpoint),
            "You drop any table. The third and the fourth were trained: they are not the formula, "
            "and dropping them loses weights.",
        ),
        Mistake(
            lambda checkpoint: dict(checkpoint),
            "Nothing was dropped: the sinusoid can be computed again and need not be stored.",
        ),
        Mistake(
            lambda checkpoint: _drop_if(lambda pe: _is_formula(pe[:1]), checkpoint),
            "You compared the first row only. The fourth table begins like the sinusoid and ends "
            "otherwise.",
        ),
        Mistake(
            lambda checkpoint: _drop_if(
                lambda pe: pe.shape == (7, 4) and _is_formula(pe), checkpoint
            ),
            "You expect one length. A sinusoid of any length is a beginning of the same table: "
            "compare with the formula at the stored length.",
        ),
    ],
    praise="Right: checked first, then dropped, and a trained table stays.",
)


# --- A class token is not a place in the picture --------------------------------------------------
def _resize_patches(table: Array, new_length: int) -> Array:
    return np.concatenate([table[:1], _stretch(table[1:], new_length - 1)])


keep_class_row = Exercise(
    _resize_patches,
    cases=[(_rng.normal(size=(5, 3)), 8), (_rng.normal(size=(7, 2)), 4)],
    mistakes=[
        Mistake(
            _stretch,
            "Row 0 belongs to the class token, and some of the new rows are a blend of it with "
            "the first patch.",
        ),
        Mistake(
            lambda table, new_length: _stretch(table[1:], new_length),
            "The class token lost its row.",
        ),
        Mistake(
            lambda table, new_length: np.concatenate(
                [_stretch(table[1:], new_length - 1), table[:1]]
            ),
            "The class token's row is at the end. It was the first, and the model looks for it "
            "there.",
        ),
        Mistake(
            lambda table, new_length: np.concatenate([table[:1], _stretch(table[1:], new_length)]),
            "One row too many: new_length counts the class token.",
        ),
    ],
    praise="Right: special tokens stand outside the order, so stretch only what is in it.",
)


# --- A table over a grid --------------------------------------------------------------------------
def _resize_axis(grid: Array, axis: int, new_length: int) -> Array:
    moved = np.moveaxis(grid, axis, 0)
    flat = moved.reshape(len(moved), -1)
    return np.moveaxis(_stretch(flat, new_length).reshape(new_length, *moved.shape[1:]), 0, axis)


def _resize_grid(grid: Array, rows: int, columns: int) -> Array:
    return _resize_axis(_resize_axis(grid, 0, rows), 1, columns)


resize_grid = Exercise(
    _resize_grid,
    cases=[
        (_rng.normal(size=(2, 8, 3)), 4, 4),
        (_rng.normal(size=(3, 5, 2)), 5, 7),
    ],
    mistakes=[
        Mistake(
            lambda grid, rows, columns: (
                grid.reshape(rows, columns, -1)
                if grid.shape[0] * grid.shape[1] == rows * columns
                else _resize_grid(grid, rows, columns)
            ),
            "For (2, 8) to (4, 4) you kept all rows because their number agrees. The patch at "
            "(1, 0) came from (0, 4): half of the picture moved.",
        ),
        Mistake(
            lambda grid, rows, columns: _stretch(
                grid.reshape(-1, grid.shape[2]), rows * columns
            ).reshape(rows, columns, -1),
            "You stretched the flat list of patches, so the end of one line is blended with the "
            "beginning of the next. Stretch each axis of the grid.",
        ),
        Mistake(
            lambda grid, rows, columns: _resize_grid(grid, columns, rows),
            "Rows and columns are swapped.",
        ),
        Mistake(
            lambda grid, rows, columns: np.repeat(
                _resize_axis(grid, 0, rows)[:, :1], columns, axis=1
            ),
            "Only the first axis was stretched; all patches of a line share a row of the table.",
        ),
    ],
    praise="Right: one axis after the other, and the order of the two makes no difference.",
)
