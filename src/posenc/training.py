"""Training by hand: a loss, its gradient, Adam, and one call that runs an experiment.

`train(task, encoding="rotary", seed=0)` builds a two-layer `Tagger`, trains it on fresh batches
and measures it; the positional encoding, its place and the causal mask are one argument each.
`fit` is the loop inside, for any model with `forward`, `backward` and `parameters`.

Everything is float64. At this size it is as fast as float32, because the time goes into many small
calls, and it buys results that survive a change of machine. BLAS libraries add up in different
orders, and training magnifies the difference step by step: from 1e-7 to the fourth digit of an
accuracy within 200 steps, but from 1e-16 to no more than 1e-14 in the loss. Print accuracies to two
digits and losses to three, and they are the same everywhere; never print times.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _arguments as arguments
from posenc.attention import softmax
from posenc.injection import Injection
from posenc.layers import Array, Gradients
from posenc.tasks import Batch, Task
from posenc.transformer import Tagger


class Model(Protocol):
    """What `fit` can train: `Tagger`, `Transformer`, or a class of your own."""

    def parameters(self) -> dict[str, Array]:
        """Return the trainable arrays by name."""

    def forward(self, *inputs: Any, **options: Any) -> tuple[Array, Any]:
        """Return scores (B, L, V) and a tape."""

    def backward(self, tape: Any, grad: Array) -> Gradients:
        """Return the gradients of the parameters by name."""


def cross_entropy(
    scores: ArrayLike, targets: ArrayLike, mask: ArrayLike | None = None
) -> tuple[float, Array]:
    """Return how surprised a model is by the right answers, and the gradient of that.

    Parameters
    ----------
    scores : array_like, shape (..., V)
        A real number for each possible token.
    targets : array_like of int, shape (...)
        The right token.
    mask : array_like of bool, shape (...), optional
        ``True`` where the answer counts; everywhere when not given.

    Returns
    -------
    loss : float
        Mean of −log softmax(scores)[target] over the answers that count, in nats.
    grad : ndarray, shape (..., V)
        Gradient of the loss with respect to `scores`: softmax minus one at the target.

    Raises
    ------
    TypeError, ValueError
        If a shape or kind is wrong, or no answer counts.

    Examples
    --------
    >>> loss, grad = cross_entropy([[0.0, 0.0]], [1])
    >>> round(loss, 3), grad
    (0.693, array([[ 0.5, -0.5]]))
    """
    scores = arguments.float_array("scores", scores)
    targets = arguments.integer_array("targets", targets, minimum=0)
    if scores.ndim == 0 or scores.shape[:-1] != targets.shape:
        raise ValueError(
            f"scores must have shape {(*targets.shape, 'V')} for targets {targets.shape}, got "
            f"{scores.shape}"
        )
    if targets.size and targets.max() >= scores.shape[-1]:
        raise ValueError(f"targets must be below V = {scores.shape[-1]}, got {targets.max()}")
    counted = np.ones(targets.shape, bool)
    if mask is not None:
        counted = arguments.boolean_array("mask", mask)
    if counted.shape != targets.shape or not counted.any():
        raise ValueError(
            f"mask must have the shape of targets {targets.shape} and be True somewhere, got "
            f"{counted.shape} with {counted.sum()} True"
        )
    where = (*np.nonzero(counted), targets[counted])
    probability = softmax(scores)
    loss = -np.log(np.maximum(probability[where], np.finfo(scores.dtype).tiny)).mean()
    grad = probability * counted[..., np.newaxis]
    grad[where] -= 1
    return float(loss), grad / counted.sum()


class Adam:
    """Gradient descent with a step size for every single weight (Kingma and Ba 2015, alg. 1).

    Parameters
    ----------
    parameters : mapping from name to ndarray
        The arrays to train; `step` writes into them.
    learning_rate : float, default 3e-3
        Length of a step.
    beta1, beta2 : float, default 0.9 and 0.98
        How much of the running means of gradient and squared gradient survives a step. The second
        is that of Vaswani et al. (2017), section 5.3.
    eps : float, default 1e-9
        Keeps the division finite.

    Raises
    ------
    TypeError, ValueError
        If a number has the wrong kind or value; `step`, if the gradients have other names.

    Examples
    --------
    >>> weights = {"w": np.array([1.0])}
    >>> adam = Adam(weights, learning_rate=0.1)
    >>> for _ in range(100):
    ...     adam.step({"w": 2 * weights["w"]})  # the gradient of w²
    >>> bool(abs(weights["w"][0]) < 0.05)
    True
    """

    def __init__(
        self,
        parameters: Mapping[str, Array],
        learning_rate: float = 3e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.98,
        eps: float = 1e-9,
    ):
        self.parameters = dict(parameters)
        self.learning_rate = arguments.real("learning_rate", learning_rate, minimum=0)
        self.beta1 = _below_one("beta1", beta1)
        self.beta2 = _below_one("beta2", beta2)
        self.eps = arguments.real("eps", eps, minimum=0)
        self.mean = {name: np.zeros_like(array) for name, array in self.parameters.items()}
        self.square = {name: np.zeros_like(array) for name, array in self.parameters.items()}
        self.steps = 0

    def step(self, gradients: Mapping[str, Array]) -> None:
        """Move every parameter one step against its gradient."""
        if gradients.keys() != self.parameters.keys():
            odd = sorted(gradients.keys() ^ self.parameters.keys())
            raise ValueError(f"gradients must have the names of the parameters, got odd ones {odd}")
        self.steps += 1
        # Both means start at zero, so they are too small at first by these factors.
        mean_share = 1 - self.beta1**self.steps
        square_share = 1 - self.beta2**self.steps
        for name, weight in self.parameters.items():
            mean, square, grad = self.mean[name], self.square[name], gradients[name]
            mean += (1 - self.beta1) * (grad - mean)
            square += (1 - self.beta2) * (grad**2 - square)
            size = np.sqrt(square / square_share) + self.eps
            weight -= self.learning_rate / mean_share * mean / size


def fit(
    model: Model,
    draw: Callable[[], Batch],
    *,
    steps: int,
    learning_rate: float = 3e-3,
    warm_up: int = 20,
) -> list[float]:
    """Train a model on fresh batches, and return the loss of every step.

    The learning rate rises in a straight line over the first `warm_up` steps and then falls in a
    straight line to zero, so that the last steps settle instead of jumping about.

    Parameters
    ----------
    model : Model
        Its parameters are changed.
    draw : callable
        Returns a new `posenc.tasks.Batch` each time.
    steps : int
        Number of batches.
    learning_rate : float, default 3e-3
        The highest it gets.
    warm_up : int, default 20
        Steps until then.

    Returns
    -------
    list of float, length `steps`
        Mean cross-entropy in nats before each step.

    Raises
    ------
    TypeError, ValueError
        If a number has the wrong kind or value, or the model's gradients have other names than its
        parameters.

    Examples
    --------
    >>> from posenc.tasks import ShiftByOne
    >>> rng = np.random.default_rng(0)
    >>> task = ShiftByOne(length=5)
    >>> model = Tagger(task.vocab_size, 16, 2, 32, 1, rng=rng)
    >>> losses = fit(model, lambda: task.batch(rng, 32), steps=40)
    >>> losses[-1] < losses[0]
    True
    """
    steps = arguments.integer("steps", steps, minimum=1)
    warm_up = arguments.integer("warm_up", warm_up, minimum=0)
    highest = arguments.real("learning_rate", learning_rate, minimum=0)
    adam = Adam(model.parameters(), highest)
    losses = []
    for step in range(steps):
        batch = draw()
        scores, tape = model.forward(**batch.inputs)
        loss, grad = cross_entropy(scores, batch.targets, batch.mask)
        adam.learning_rate = highest * min((step + 1) / (warm_up + 1), 1 - step / steps)
        adam.step(model.backward(tape, grad))
        losses.append(loss)
    return losses


def accuracy(model: Model, batch: Batch) -> float:
    """Return the share of counted answers whose highest score is the right token.

    Parameters
    ----------
    model : Model
        Only its `forward` is used.
    batch : Batch
        Questions and answers.

    Returns
    -------
    float
        In 0 … 1.

    Raises
    ------
    ValueError
        If no answer counts.

    Examples
    --------
    >>> from posenc.tasks import Reverse
    >>> task, rng = Reverse(length=6), np.random.default_rng(0)
    >>> untrained = Tagger(task.vocab_size, 16, 2, 32, 1, rng=rng)
    >>> accuracy(untrained, task.batch(rng, 200)) < 0.3
    True
    """
    if not batch.mask.any():
        raise ValueError("batch.mask must be True somewhere, got none to count")
    scores, _ = model.forward(**batch.inputs)
    right = scores.argmax(axis=-1) == batch.targets
    return float(right[batch.mask].mean())


@dataclass
class Result:
    """What `train` found out.

    Attributes
    ----------
    task : Task
    model : Tagger
        The trained model.
    accuracy : dict from int to float
        Share of right answers on fresh sequences, for each length that was tested.
    losses : list of float
        Training loss of every step.
    seed : int
    steps : int
    cpu_seconds : float
        Time of the training; different on every machine, so do not print or test it.
    """

    task: Task
    model: Tagger
    accuracy: dict[int, float]
    seed: int
    steps: int
    losses: list[float] = field(repr=False)
    cpu_seconds: float = field(repr=False, compare=False)

    @cached_property
    def ceiling(self) -> dict[int, float]:
        """The best that a model without any sense of order could do, for each length tested.

        Worked out when first asked for: for long sequences it takes as long as the training.
        """
        return {length: self.task.ceiling(length) for length in self.accuracy}


def train(
    task: Task,
    *,
    encoding: str | Injection = "sinusoidal",
    causal: bool = False,
    where: str | int | None = None,
    steps: int = 300,
    seed: int = 0,
    lengths: Sequence[int] | None = None,
    test_lengths: Sequence[int] | None = None,
    batch_size: int = 32,
    learning_rate: float = 1e-2,
    d_model: int = 32,
    n_heads: int = 4,
    d_ff: int = 64,
    n_layers: int = 2,
    n_test: int = 1000,
) -> Result:
    """Train a small `Tagger` on a task and measure it: one call, one experiment.

    Parameters
    ----------
    task : Task
        One of `posenc.tasks`.
    encoding, where, causal
        As in `posenc.stacks.Encoder`: what the experiment is about.
    steps : int, default 300
        Number of batches.
    seed : int, default 0
        Of the weights, the batches and the test sequences.
    lengths : sequence of int, optional
        Lengths to train on, one drawn for each batch; the task's own when not given.
    test_lengths : sequence of int, optional
        Lengths to test on; the longest of `lengths` when not given.
    batch_size : int, default 32
        Sequences in a batch.
    learning_rate : float, default 1e-2
        The highest one, see `fit`.
    d_model, n_heads, d_ff, n_layers : int
        Size of the model: 32, 4, 64, 2.
    n_test : int, default 1000
        Sequences to test on, for each length.

    Returns
    -------
    Result

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong kind or value.

    Examples
    --------
    >>> from posenc.tasks import WhichCameFirst
    >>> result = train(WhichCameFirst(length=6), encoding="none", steps=20)
    >>> result.ceiling
    {6: 0.5}
    """
    lengths = _lengths("lengths", [task.length] if lengths is None else lengths)
    tested = _lengths("test_lengths", [max(lengths)] if test_lengths is None else test_lengths)
    seed = arguments.integer("seed", seed, minimum=0)
    weights_rng, batches_rng, test_rng = np.random.default_rng(seed).spawn(3)
    model = Tagger(
        task.vocab_size,
        d_model,
        n_heads,
        d_ff,
        n_layers,
        rng=weights_rng,
        encoding=encoding,
        where=where,
        causal=causal,
        max_length=max(*lengths, *tested),
    )

    def draw() -> Batch:
        return task.batch(batches_rng, batch_size, int(batches_rng.choice(lengths)))

    start = time.process_time()
    losses = fit(model, draw, steps=steps, learning_rate=learning_rate)
    seconds = time.process_time() - start
    return Result(
        task,
        model,
        {n: accuracy(model, task.batch(test_rng, n_test, n)) for n in tested},
        seed,
        steps,
        losses,
        seconds,
    )


def _below_one(name: str, value: float) -> float:
    number = arguments.real(name, value, minimum=0)
    if number >= 1:
        raise ValueError(f"{name} must be below 1, got {value}")
    return number


def _lengths(name: str, value: Sequence[int]) -> list[int]:
    lengths: NDArray[np.int64] = arguments.integer_array(name, value, ndim=1, minimum=1)
    if not lengths.size:
        raise ValueError(f"{name} must hold at least one length, got none")
    return lengths.tolist()
