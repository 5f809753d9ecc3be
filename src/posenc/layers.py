"""The plain layers of a Transformer, each with its gradient written beside it.

Every layer of the package speaks the same three sentences:

`layer(x)`
    checks its arguments and returns the output, in the dtype of `x`.
`layer.forward(x)`
    trusts its arguments and returns `(output, tape)`. The tape is whatever the way back needs to
    remember of the way there.
`layer.backward(tape, grad)`
    takes `grad`, the gradient of the loss with respect to the output, and returns
    `(grad_x, gradients)`: the gradient with respect to `x`, and a dict with the gradient of every
    parameter, named as in `layer.parameters()`.

Nothing is remembered between calls, so one layer can be used twice in the same pass (a shared
table) and its gradients added by hand.

Shapes, here and in the modules built on this one: B batch, L length, Q queries, K keys, H heads,
D = `d_model`, F = `d_ff`, V = vocabulary. Weights are stored as (in, out): `y = x @ W + b`.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _arguments as arguments

Array = NDArray[np.floating[Any]]
Gradients = dict[str, Array]

_erf = np.frompyfunc(math.erf, 1, 1)  # NumPy has no erf of its own


def under(name: str, arrays: Mapping[str, Array]) -> Gradients:
    """Return `arrays` with `name` and a dot before every key.

    Examples
    --------
    >>> under("norm", {"scale": np.ones(2)})
    {'norm.scale': array([1., 1.])}
    """
    return {f"{name}.{inner}": array for inner, array in arrays.items()}


class Layer:
    """Something with parameters: every array, layer or list of layers it holds as an attribute.

    What can be recomputed (a sinusoidal table, a mask) is never an attribute, so it is neither
    trained nor saved by accident.
    """

    def parameters(self) -> dict[str, Array]:
        """Return the trainable arrays by dotted name.

        They are the arrays themselves, not copies: an optimiser writes into them.

        Examples
        --------
        >>> norm = LayerNorm(4)
        >>> {name: array.shape for name, array in norm.parameters().items()}
        {'scale': (4,), 'shift': (4,)}
        """
        found: dict[str, Array] = {}
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                found[name] = value
            elif isinstance(value, Layer):
                found |= under(name, value.parameters())
            elif isinstance(value, list):
                for index, layer in enumerate(value):
                    found |= under(f"{name}.{index}", layer.parameters())
        return found


class Linear(Layer):
    """An affine map `y = x @ W + b`.

    Parameters
    ----------
    n_in, n_out : int
        Widths of input and output.
    rng : numpy.random.Generator
        Draws the weights, uniform in ±√(6 / (n_in + n_out)) (Glorot and Bengio 2010, eq. 16).
    bias : bool, default True
        Whether there is a `b`; it starts at zero.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong kind or value.

    Examples
    --------
    >>> linear = Linear(3, 5, rng=np.random.default_rng(0))
    >>> linear(np.ones((2, 3))).shape
    (2, 5)
    """

    def __init__(self, n_in: int, n_out: int, *, rng: np.random.Generator, bias: bool = True):
        n_in = arguments.integer("n_in", n_in, minimum=1)
        n_out = arguments.integer("n_out", n_out, minimum=1)
        limit = math.sqrt(6 / (n_in + n_out))
        self.weight: Array = arguments.generator("rng", rng).uniform(-limit, limit, (n_in, n_out))
        self.bias: Array | None = np.zeros(n_out) if arguments.boolean("bias", bias) else None

    def __call__(self, x: ArrayLike) -> Array:
        """Return `x @ W + b` for `x` of shape (..., n_in)."""
        x = _vectors("x", x, len(self.weight))
        return self.forward(x)[0].astype(x.dtype, copy=False)

    def forward(self, x: Array) -> tuple[Array, Array]:
        """Return the output and, as tape, the input."""
        y = x @ self.weight
        return (y if self.bias is None else y + self.bias), x

    def backward(self, tape: Array, grad: Array) -> tuple[Array, Gradients]:
        """Send `grad` (..., L, n_out) back through the map."""
        # One small product for each sequence, then their sum. One large product over all rows
        # would be shared out among threads: slower for sizes like ours, and rounded differently on
        # a machine with another number of cores.
        outer = tuple(range(grad.ndim - 2))
        gradients: Gradients = {"weight": (tape.swapaxes(-1, -2) @ grad).sum(axis=outer)}
        if self.bias is not None:
            gradients["bias"] = grad.sum(axis=(*outer, -2))
        return grad @ self.weight.T, gradients


class Embedding(Layer):
    """A vector for every token, multiplied by √d_model (Vaswani et al. 2017, §3.4).

    The table is drawn from N(0, 1/d_model), so the scaled vectors have entries of variance 1, the
    size of a sinusoidal encoding's entries; without the factor the encoding would drown them.

    Parameters
    ----------
    vocab_size, d_model : int
        Number of tokens, and width of each vector.
    rng : numpy.random.Generator
        Draws the table.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong kind or value.

    Examples
    --------
    >>> embedding = Embedding(7, 4, rng=np.random.default_rng(0))
    >>> embedding([[0, 6, 6]]).shape
    (1, 3, 4)
    >>> embedding([[7]])
    Traceback (most recent call last):
        ...
    IndexError: tokens must be below the vocabulary size 7, got 7
    """

    def __init__(self, vocab_size: int, d_model: int, *, rng: np.random.Generator):
        vocab_size = arguments.integer("vocab_size", vocab_size, minimum=1)
        d_model = arguments.integer("d_model", d_model, minimum=1)
        rng = arguments.generator("rng", rng)
        self.table: Array = rng.standard_normal((vocab_size, d_model)) / math.sqrt(d_model)

    def __call__(self, tokens: ArrayLike) -> Array:
        """Return the scaled vectors (B, L, d_model) of `tokens` (B, L)."""
        return self.forward(self.checked(tokens))[0]

    def checked(self, tokens: ArrayLike) -> NDArray[np.int64]:
        """Return `tokens` (B, L) as integers that the table has rows for."""
        ids = arguments.integer_array("tokens", tokens, minimum=0)
        if ids.ndim != 2:
            raise ValueError(f"tokens must have shape (batch, length), got {ids.shape}")
        if ids.size and ids.max() >= len(self.table):
            raise IndexError(
                f"tokens must be below the vocabulary size {len(self.table)}, got {ids.max()}"
            )
        return ids

    def forward(self, tokens: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
        """Return the scaled rows and, as tape, the tokens."""
        return self.table[tokens] * math.sqrt(self.table.shape[1]), tokens

    def backward(self, tape: NDArray[np.int64], grad: Array) -> Gradients:
        """Add up, for every token, the gradients of the places where it stood."""
        table = np.zeros_like(self.table)
        np.add.at(table, tape, grad * math.sqrt(self.table.shape[1]))
        return {"table": table}


class LayerNorm(Layer):
    """Each vector shifted to mean 0 and scaled to variance 1, then to learned values.

    y = (x − mean) / √(variance + eps) · scale + shift, over the last axis (Ba et al. 2016).

    Parameters
    ----------
    d_model : int
        Width of the vectors.
    eps : float, default 1e-5
        Added to the variance, so that a constant vector does not divide by zero.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong kind or value.

    Examples
    --------
    >>> LayerNorm(4)([1.0, 1.0, 3.0, 3.0]).round(3)
    array([-1., -1.,  1.,  1.])
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5):
        d_model = arguments.integer("d_model", d_model, minimum=1)
        self.eps = arguments.real("eps", eps, above=0)
        self.scale: Array = np.ones(d_model)
        self.shift: Array = np.zeros(d_model)

    def __call__(self, x: ArrayLike) -> Array:
        """Return the normalised vectors of `x`, shape (..., d_model)."""
        x = _vectors("x", x, len(self.scale))
        return self.forward(x)[0].astype(x.dtype, copy=False)

    def forward(self, x: Array) -> tuple[Array, tuple[Array, Array]]:
        """Return the output; the tape is the vectors at mean 0, variance 1, and 1/√variance."""
        centred = x - x.mean(axis=-1, keepdims=True)
        rate = 1 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self.eps)
        unit = centred * rate
        return unit * self.scale + self.shift, (unit, rate)

    def backward(self, tape: tuple[Array, Array], grad: Array) -> tuple[Array, Gradients]:
        """Send `grad` back; what would change the mean or the variance is taken out of it."""
        unit, rate = tape
        rows = tuple(range(grad.ndim - 1))
        gradients = {"scale": (grad * unit).sum(axis=rows), "shift": grad.sum(axis=rows)}
        grad = grad * self.scale
        along_mean = grad.mean(axis=-1, keepdims=True)
        along_unit = unit * (grad * unit).mean(axis=-1, keepdims=True)
        return rate * (grad - along_mean - along_unit), gradients


class FeedForward(Layer):
    """Two linear maps with a bend between them, the same for every position.

    FFN(x) = act(x W₁ + b₁) W₂ + b₂ (Vaswani et al. 2017, eq. 2).

    Parameters
    ----------
    d_model, d_ff : int
        Width outside and inside.
    rng : numpy.random.Generator
        Draws the weights.
    activation : {"relu", "gelu"}, default "relu"
        max(0, x), or x·Φ(x) with Φ the normal distribution function (Hendrycks and Gimpel 2016),
        computed exactly, not by the tanh approximation.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong kind or value.

    Examples
    --------
    >>> feed_forward = FeedForward(4, 16, rng=np.random.default_rng(0), activation="gelu")
    >>> feed_forward(np.ones((2, 3, 4))).shape
    (2, 3, 4)
    """

    def __init__(
        self, d_model: int, d_ff: int, *, rng: np.random.Generator, activation: str = "relu"
    ):
        d_ff = arguments.integer("d_ff", d_ff, minimum=1)
        self.activation = arguments.one_of("activation", activation, ["relu", "gelu"])
        self.first = Linear(arguments.integer("d_model", d_model, minimum=1), d_ff, rng=rng)
        self.second = Linear(d_ff, d_model, rng=rng)

    def __call__(self, x: ArrayLike) -> Array:
        """Return the transformed vectors of `x`, shape (..., d_model)."""
        x = _vectors("x", x, len(self.first.weight))
        return self.forward(x)[0].astype(x.dtype, copy=False)

    def forward(self, x: Array) -> tuple[Array, Any]:
        """Return the output; the tape holds both maps' inputs and the slope of the bend."""
        before, first_tape = self.first.forward(x)  # (..., F)
        after, slope = _ACTIVATIONS[self.activation](before)
        y, second_tape = self.second.forward(after)
        return y, (first_tape, slope, second_tape)

    def backward(self, tape: Any, grad: Array) -> tuple[Array, Gradients]:
        """Send `grad` back through the second map, the bend and the first map."""
        first_tape, slope, second_tape = tape
        grad, second = self.second.backward(second_tape, grad)
        grad, first = self.first.backward(first_tape, grad * slope)
        return grad, under("first", first) | under("second", second)


def _vectors(name: str, value: ArrayLike, width: int) -> Array:
    """Return `value` as a float array whose last axis is `width`, or raise an error naming it."""
    array = arguments.float_array(name, value)
    if array.ndim == 0 or array.shape[-1] != width:
        raise ValueError(f"{name} must have shape (..., {width}), got {array.shape}")
    return array


def _relu(x: Array) -> tuple[Array, Array]:
    """Return max(0, x) and its slope."""
    return np.maximum(x, 0), (x > 0).astype(x.dtype)


def _gelu(x: Array) -> tuple[Array, Array]:
    """Return x·Φ(x) and its slope Φ(x) + x·φ(x)."""
    below = (1 + _erf(x / math.sqrt(2)).astype(x.dtype)) / 2
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return x * below, below + x * density


_ACTIVATIONS = {"relu": _relu, "gelu": _gelu}
