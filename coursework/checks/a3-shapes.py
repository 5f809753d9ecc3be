"""Assignment A3: what each task asks, on which inputs, for how many points."""

import numpy as np

from posenc.attention import merge_heads, softmax
from posenc.positions import add_positions
from posenc.rotary import apply_rotary
from posenc_grader.tasks import Aspect, Mistake, Task

SHAPES = "chapters/05-shape-pitfalls.ipynb"
AXIS = f"{SHAPES}#Every token of a sentence gets the same vector"
HEADS = f"{SHAPES}#RoPE turns the heads instead of the tokens"
SWAP = f"{SHAPES}#Two equal sizes hide a swap"
CACHE = f"{SHAPES}#The cache forgets where it is"
CONTRACT = f"{SHAPES}#One line of contract shuts out a family of faults"
UNCHANGED = "This is still what the snippet computes. "


def batch_and_table(rng, batch, length, rows=9):
    """Make embeddings and a table of another size on every axis."""
    return rng.normal(size=(batch, length, 6)), rng.normal(size=(rows, 6))


def added(x, table):
    """Add the rows of the tokens' places."""
    return add_positions(x, table[: x.shape[1]])


def padded_weights(scores, real):
    """Give weights with nothing on padding keys."""
    hidden = softmax(np.where(real[:, None, :], scores, -np.inf)[real.any(axis=1)])
    weights = np.zeros_like(scores)
    weights[real.any(axis=1)] = hidden
    return weights


def scores_and_real(rng, lengths, size=6):
    """Make scores and a mask of real tokens, with padding on the right."""
    return 3 * rng.normal(size=(len(lengths), size, size)), np.arange(size) < lengths[:, None]


def rotary(x):
    """Turn by the token's position, whatever the place of the heads."""
    return apply_rotary(x.swapaxes(1, 2), np.arange(x.shape[1])).swapaxes(1, 2)


def stepped(x, table, n_cached):
    """Add the rows that follow those of the cached tokens."""
    return add_positions(x, table[n_cached : n_cached + x.shape[1]])


def step_inputs(rng, new, n_cached):
    """Make new tokens and a table that is not twice as long as the cache."""
    return *batch_and_table(rng, 2, new, rows=2 * n_cached + 7), n_cached


def wrong_encodings(rng, dtype=float):
    """Make encodings that broadcast against (2, 3, 4), or do not, and must all be refused."""
    shapes = (4,), (1, 4), (3, 1), (2, 1, 4), (1, 3, 4), (1, 1, 4), (2, 3, 1), (5, 4), (4, 3)
    return [(rng.normal(size=(2, 3, 4)), rng.normal(size=shape)) for shape in shapes]


def explained(number: int, name: str, title: str, section: str, exercise: str) -> Task:
    """Make the task of a written explanation."""
    return Task(
        cell=f"a3-{name}-why",
        answer="",
        title=f"{number} {title}, explained",
        objective="explain a silent fault, and name a check that finds it",
        section=section,
        exercise=exercise,
        written=2,
    )


TASKS = [
    Task(
        cell="a3-add-check",
        answer="add_positions",
        title="1 Every sentence gets a code",
        objective="add positions along the token axis",
        section=AXIS,
        exercise="ex-shapes-slice",
        aspects=[
            Aspect(
                "each token gets the code of its place",
                2,
                added,
                lambda rng: [batch_and_table(rng, 2, 5), batch_and_table(rng, 1, 4)],
                [
                    Mistake(
                        lambda x, table: x + table[: x.shape[0]][:, None],
                        UNCHANGED + "All tokens of a sentence get one row: the table is cut by the "
                        "batch.",
                    ),
                    Mistake(
                        lambda x, table: x + table[0],
                        "Every token got the code of position 0.",
                    ),
                    Mistake(
                        lambda x, table: x + table[1 : x.shape[1] + 1],
                        "Positions count from 0; you started at 1.",
                    ),
                ],
            ),
            Aspect(
                "a sentence longer than the table",
                1,
                cases=lambda rng: [batch_and_table(rng, 2, 12), batch_and_table(rng, 3, 2, rows=1)],
                raises=IndexError,
            ),
        ],
    ),
    explained(2, "add", "Every sentence gets a code", AXIS, "ex-shapes-slice"),
    Task(
        cell="a3-padding-check",
        answer="padded_weights",
        title="3 Padding is hidden",
        objective="hide padding on the key axis",
        section=SWAP,
        exercise="ex-masking-keys",
        aspects=[
            Aspect(
                "sentences with padding, and full ones",
                3,
                padded_weights,
                lambda rng: [scores_and_real(rng, np.append(rng.integers(1, 6, 3), 6))] * 2,
                [
                    Mistake(
                        lambda scores, real: softmax(np.where(real[:, :, None], scores, -1e4)),
                        UNCHANGED + "The mask stands on the query axis.",
                    ),
                    Mistake(
                        lambda scores, real: softmax(scores) * real[:, None, :],
                        "The weights of real keys do not sum to 1: hide before the softmax.",
                    ),
                    Mistake(
                        lambda scores, real: softmax(np.where(real[:, None, :], scores, 0.0)),
                        "Padding keeps weight: a score of 0 is a score like any other.",
                    ),
                    Mistake(
                        lambda scores, real: padded_weights(scores, real) * real[:, :, None],
                        "The rows of padding queries were emptied as well; only keys are hidden.",
                    ),
                ],
            ),
            Aspect(
                "a sentence that is all padding",
                1,
                padded_weights,
                lambda rng: [scores_and_real(rng, np.array([3, 0]))],
                [
                    Mistake(
                        lambda scores, real: softmax(np.where(real[:, None, :], scores, -1e9)),
                        "A sentence without tokens gets equal weights: a finite fill is no mask.",
                    ),
                    Mistake(
                        lambda scores, real: np.where(
                            real.any(axis=1)[:, None, None], padded_weights(scores, real), np.nan
                        ),
                        "A sentence without real tokens gets NaN: its weights are 0 divided by 0.",
                    ),
                ],
            ),
        ],
    ),
    explained(4, "padding", "Padding is hidden", SWAP, "ex-masking-keys"),
    Task(
        cell="a3-rotary-check",
        answer="rotary",
        title="5 Turned by position",
        objective="turn tokens, not heads",
        section=HEADS,
        exercise="ex-shapes-rotate",
        aspects=[
            Aspect(
                "several tokens and heads",
                3,
                rotary,
                lambda rng: [(rng.normal(size=(2, 5, 3, 8)),), (rng.normal(size=(1, 4, 2, 6)),)],
                [
                    Mistake(
                        lambda x: apply_rotary(x, np.arange(x.shape[2])),
                        UNCHANGED + "Heads are turned by their number, tokens by nothing.",
                    ),
                    Mistake(
                        lambda x: rotary(x.swapaxes(0, 1)).swapaxes(0, 1),
                        "The angle follows the batch.",
                    ),
                    Mistake(
                        lambda x: 2 * x - rotary(x),
                        "The sign of the sines does not make a rotation.",
                    ),
                    Mistake(
                        lambda x: apply_rotary(x.swapaxes(1, 2), -np.arange(x.shape[1])).swapaxes(
                            1, 2
                        ),
                        "The tokens are turned the other way round.",
                    ),
                    Mistake(lambda x: rotary(x).swapaxes(1, 2), "The axes of x were exchanged."),
                ],
            ),
            Aspect(
                "one head, and as many heads as tokens",
                1,
                rotary,
                lambda rng: [(rng.normal(size=(2, 5, 1, 4)),), (rng.normal(size=(2, 3, 3, 4)),)],
            ),
        ],
    ),
    explained(6, "rotary", "Turned by position", HEADS, "ex-shapes-rotate"),
    Task(
        cell="a3-merge-check",
        answer="merge_heads",
        title="7 Heads go back into one vector",
        objective="merge heads without mixing tokens",
        section=SWAP,
        exercise="ex-shapes-predict",
        aspects=[
            Aspect(
                "several tokens and heads",
                3,
                merge_heads,
                lambda rng: [(rng.normal(size=(2, 3, 5, 4)),), (rng.normal(size=(3, 2, 4, 5)),)],
                [
                    Mistake(
                        lambda x: x.reshape(len(x), x.shape[2], -1),
                        UNCHANGED + "A row holds several tokens of one head.",
                    ),
                    Mistake(
                        lambda x: x.transpose(0, 2, 3, 1).reshape(len(x), x.shape[2], -1),
                        "The numbers of the heads alternate; head 0 must come first, whole.",
                    ),
                    Mistake(
                        lambda x: x.transpose(0, 2, 1, 3),
                        "The axes are in order; they must still be joined.",
                    ),
                ],
            ),
        ],
    ),
    explained(8, "merge", "Heads go back into one vector", SWAP, "ex-shapes-predict"),
    Task(
        cell="a3-cache-check",
        answer="step",
        title="9 One token at a time",
        objective="continue positions after cached tokens",
        section=CACHE,
        exercise="ex-shapes-cached",
        aspects=[
            Aspect(
                "one new token, and several",
                2,
                stepped,
                lambda rng: (
                    [step_inputs(rng, new, int(rng.integers(3, 9))) for new in (1, 3)]
                    + [step_inputs(rng, 2, 0)]
                ),
                [
                    Mistake(
                        lambda x, table, n: (
                            x + table[-n : -n + x.shape[1]] if n else x + table[: x.shape[1]]
                        ),
                        UNCHANGED + "The rows are counted from the end of the table.",
                    ),
                    Mistake(
                        lambda x, table, n: x + table[: x.shape[1]],
                        "Every new token starts at position 0 again.",
                    ),
                    Mistake(
                        lambda x, table, n: x + table[n + 1 : n + 1 + x.shape[1]],
                        "One too far: after n tokens the next position is n, since they count from "
                        "0.",
                    ),
                    Mistake(
                        lambda x, table, n: x + table[n],
                        "All new tokens get the position of the first one.",
                    ),
                ],
            ),
            Aspect(
                "past the end of the table",
                1,
                cases=lambda rng: [
                    (*batch_and_table(rng, 2, 1), 9),
                    (*batch_and_table(rng, 2, 3), 7),
                    (*batch_and_table(rng, 2, 2), 8),
                ],
                raises=IndexError,
            ),
            Aspect(
                "a negative count",
                1,
                cases=lambda rng: [(*batch_and_table(rng, 2, 1), -int(rng.integers(1, 5)))],
                raises=ValueError,
            ),
        ],
    ),
    explained(10, "cache", "One token at a time", CACHE, "ex-shapes-cached"),
    Task(
        cell="a3-contract-check",
        answer="checked_add",
        title="11 A contract at the border",
        objective="refuse what would broadcast in silence",
        section=CONTRACT,
        exercise="ex-shapes-probe",
        aspects=[
            Aspect(
                "both shapes that are right",
                1,
                add_positions,
                lambda rng: [
                    (rng.normal(size=(2, 3, 4)), rng.normal(size=shape))
                    for shape in ((3, 4), (2, 3, 4))
                ],
            ),
            Aspect("shapes that are wrong", 3, cases=wrong_encodings, raises=ValueError),
            Aspect(
                "integer embeddings",
                1,
                cases=lambda rng: [(rng.integers(0, 9, (2, 3, 4)), rng.normal(size=(3, 4)))],
                raises=TypeError,
            ),
            Aspect(
                "float32 and float16 stay what they are",
                1,
                add_positions,
                lambda rng: [
                    (rng.normal(size=(2, 3, 4)).astype(kind), rng.normal(size=(3, 4)))
                    for kind in (np.float32, np.float16)
                ],
                [
                    Mistake(
                        lambda x, encoding: x + encoding,
                        "A float64 encoding turned the result into float64.",
                    )
                ],
                view=lambda result: str(result.dtype),
            ),
        ],
    ),
]
