"""Scaled dot-product attention: each query takes a weighted mean of the values.

Axes are ``(batch, heads, query, key)`` for scores and weights and ``(batch, heads, length,
head_dim)`` for queries, keys and values. Nothing in this module knows an order: reorder the keys
and values together, and every output stays what it was.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _arguments as arguments
from posenc.layers import Gradients, Layer, Linear, under


def softmax(scores: ArrayLike, axis: int = -1) -> NDArray[np.floating]:
    """Turn scores into positive weights that sum to one along an axis.

    Parameters
    ----------
    scores : array_like
        Real numbers; ``-inf`` stands for *not allowed* and gets weight 0.
    axis : int
        Axis to normalise; the key axis is the last one.

    Returns
    -------
    ndarray, shape of `scores`, dtype of `scores` (float64 for integers)
        Where every score along the axis is ``-inf`` there is nothing to choose from, and all
        weights are 0 instead of NaN.

    Raises
    ------
    TypeError
        If `scores` holds anything but real numbers or `axis` is not an integer.
    ValueError
        If a score is NaN or ``+inf``, or `axis` is not an axis of `scores`.

    Examples
    --------
    >>> softmax([[0.0, 0.0], [-np.inf, 3.0]])
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    scores = arguments.float_array("scores", scores, finite=False)
    axis = arguments.integer("axis", axis)
    if not -scores.ndim <= axis < scores.ndim:
        raise ValueError(f"axis must be an axis of scores {scores.shape}, got {axis}")
    highest = scores.max(axis=axis, keepdims=True, initial=-np.inf)
    if not (highest < np.inf).all():  # also false for NaN
        raise ValueError("scores must be below +inf and not NaN, got some that are not")
    highest = np.where(highest == -np.inf, 0, highest)  # −inf − (−inf) would be NaN
    weights = np.exp(scores - highest)
    total = weights.sum(axis=axis, keepdims=True)
    weights /= np.where(total == 0, 1, total)
    return weights


def scaled_dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    scale: float | None = None,
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Compare every query with every key and mix the values by the resulting weights.

    ``weights = softmax(scale · query keyᵀ + bias)`` over the keys that `mask` allows, and
    ``output = weights @ value``.

    Parameters
    ----------
    query : array_like, shape (..., query, head_dim)
        Usually ``(batch, heads, query, head_dim)``; the leading axes of query, key and value must
        be equal.
    key : array_like, shape (..., key, head_dim)
    value : array_like, shape (..., key, value_dim)
    mask : array_like, bool, optional
        ``True`` = may attend. Shape ``(query, key)``, or as many axes as the scores, where every
        axis but the last may have size 1.
    bias : array_like, optional
        Added to the scaled scores: shape as for `mask`, or ``(heads, query, key)``. ``-inf`` hides
        a key.
    scale : float, optional
        ``1 / sqrt(head_dim)`` when not given.

    Returns
    -------
    output : ndarray, shape (..., query, value_dim)
    weights : ndarray, shape (..., query, key)
        Each row sums to 1; a query that may see no key gets zeros, in the weights and the output.

    Raises
    ------
    TypeError
        If `mask` is not boolean, or an array does not hold real numbers.
    ValueError
        If shapes do not fit, or a number is NaN or infinite (``-inf`` is legal in `bias`).

    Notes
    -----
    Vaswani et al. (2017), section 3.2.1, equation 1.

    Examples
    --------
    >>> x = np.eye(3)[np.newaxis, np.newaxis]
    >>> output, weights = scaled_dot_product_attention(x, x, x, mask=np.tri(3, dtype=bool))
    >>> weights[0, 0].round(2)
    array([[1.  , 0.  , 0.  ],
           [0.36, 0.64, 0.  ],
           [0.26, 0.26, 0.47]])
    """
    query, key, value = _query_key_value(query, key, value)
    head_dim = query.shape[-1]
    scale = 1 / np.sqrt(max(head_dim, 1)) if scale is None else arguments.real("scale", scale)
    shape = (*query.shape[:-1], key.shape[-2])  # (..., query, key)
    if mask is not None:
        mask = _over_scores("mask", arguments.boolean_array("mask", mask), shape)
    if bias is not None:
        bias = _over_scores("bias", _additive_bias(bias), shape)

    scores = query @ key.swapaxes(-1, -2) * query.dtype.type(scale)
    if bias is not None:
        scores = scores + bias.astype(scores.dtype)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)
    return weights @ value, weights


def _query_key_value(
    query: ArrayLike, key: ArrayLike, value: ArrayLike
) -> tuple[NDArray[np.floating], NDArray[np.floating], NDArray[np.floating]]:
    """Check the three arrays against each other and give them one dtype."""
    arrays = {"query": query, "key": key, "value": value}
    checked = {name: arguments.float_array(name, array) for name, array in arrays.items()}
    for name, array in checked.items():
        arguments.with_axes(name, array, 2, "(..., length, head_dim)")
    q, k, v = (checked[name] for name in arrays)
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"query and key must share head_dim, got {q.shape} and {k.shape}")
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"key and value must share their length, got {k.shape} and {v.shape}")
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        raise ValueError(
            f"query, key and value must have equal leading axes, got {q.shape}, {k.shape} and "
            f"{v.shape}"
        )
    dtype = np.result_type(q, k, v)
    return q.astype(dtype, copy=False), k.astype(dtype, copy=False), v.astype(dtype, copy=False)


def _additive_bias(bias: ArrayLike) -> NDArray[np.floating]:
    array = arguments.float_array("bias", bias, finite=False)
    if not (array < np.inf).all():  # also false for NaN
        raise ValueError("bias must not hold NaN or +inf (−inf hides a key), got some that do")
    return array


def _over_scores(name: str, array: NDArray, shape: tuple[int, ...]) -> NDArray:
    """Accept an array that lies over scores of `shape` without guessing which axis is which."""
    whole = array.ndim == len(shape) and all(
        have in (want, 1) for have, want in zip(array.shape[:-1], shape[:-1], strict=True)
    )
    fits = array.shape == shape[-2:] or (whole and array.shape[-1] == shape[-1])
    per_head = name == "bias" and array.shape == shape[-3:]
    if not (fits or per_head):
        wanted = f"(query, key) = {shape[-2:]} or lie over the scores {shape}"
        raise ValueError(
            f"{name} must have shape {wanted}, got {array.shape}; write a (batch, key) padding "
            f"mask as mask[:, None, None, :]"
        )
    return array


def attention_backward(
    grad: NDArray[np.floating],
    query: NDArray[np.floating],
    key: NDArray[np.floating],
    value: NDArray[np.floating],
    weights: NDArray[np.floating],
) -> tuple[NDArray[np.floating], ...]:
    """Send a gradient back through `scaled_dot_product_attention` at its usual scale.

    Parameters
    ----------
    grad : ndarray, shape (..., query, value_dim)
        Gradient of the loss with respect to the output.
    query, key, value : ndarray
        What the attention was called with.
    weights : ndarray, shape (..., query, key)
        What it returned.

    Returns
    -------
    grad_query, grad_key, grad_value : ndarray
        Of the shapes of `query`, `key` and `value`.
    grad_scores : ndarray, shape (..., query, key)
        With respect to the scores after scaling, which is also the gradient of a bias. It is 0
        where a mask hides the key, since the weight is.

    Raises
    ------
    ValueError
        If the shapes do not fit together; nothing else is checked, training runs through here.

    Examples
    --------
    >>> x = np.eye(3)[np.newaxis, np.newaxis]
    >>> output, weights = scaled_dot_product_attention(x, x, x)
    >>> grad_value = attention_backward(np.ones_like(output), x, x, x, weights)[2]
    >>> grad_value[0, 0, :, 0].round(2)  # each value was read with weights that add up to 1
    array([1., 1., 1.])
    """
    grad_weights = grad @ value.swapaxes(-1, -2)
    grad_value = weights.swapaxes(-1, -2) @ grad
    # Softmax: a score matters as far as its weight gains more than the weighted mean gains.
    mean = (weights * grad_weights).sum(axis=-1, keepdims=True)
    grad_scores = weights * (grad_weights - mean)
    scaled = grad_scores / np.sqrt(query.shape[-1])
    return scaled @ key, scaled.swapaxes(-1, -2) @ query, grad_value, grad_scores


def split_heads(x: NDArray[np.floating], n_heads: int) -> NDArray[np.floating]:
    """Cut the last axis into heads.

    Parameters
    ----------
    x : ndarray, shape (batch, length, d_model)
    n_heads : int
        A divisor of d_model.

    Returns
    -------
    ndarray, shape (batch, heads, length, head_dim)
        A view: head h is the h-th block of columns.

    Raises
    ------
    ValueError
        If `x` has not three axes, or `n_heads` does not divide the last.

    Examples
    --------
    >>> split_heads(np.zeros((2, 5, 12)), 3).shape
    (2, 3, 5, 4)
    """
    batch, length, d_model = x.shape
    return x.reshape(batch, length, n_heads, d_model // n_heads).transpose(0, 2, 1, 3)


def merge_heads(x: NDArray[np.floating]) -> NDArray[np.floating]:
    """Lay the heads side by side again: the inverse of `split_heads`.

    Parameters
    ----------
    x : ndarray, shape (batch, heads, length, head_dim)

    Returns
    -------
    ndarray, shape (batch, length, d_model)

    Raises
    ------
    ValueError
        If `x` has not four axes.

    Examples
    --------
    >>> merge_heads(np.zeros((2, 3, 5, 4))).shape
    (2, 5, 12)
    """
    batch, heads, length, head_dim = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, heads * head_dim)


class AttentionTape(NamedTuple):
    """What `MultiHeadAttention.attend` remembers."""

    query: NDArray[np.floating]  # (batch, heads, query, head_dim)
    key: NDArray[np.floating]  # (batch, heads, key, head_dim)
    value: NDArray[np.floating]  # (batch, heads, key, head_dim)
    weights: NDArray[np.floating]  # (batch, heads, query, key)
    merged: NDArray[np.floating]  # (batch, query, d_model), what W_o was applied to


class MultiHeadAttention(Layer):
    """Several attentions side by side, each in its own projection of the input.

    MultiHead(Q, K, V) = [head₁ … head_H] W_o with head_h = Attention(Q W_q, K W_k, V W_v) on the
    h-th block of columns (Vaswani et al. 2017, section 3.2.2).

    Parameters
    ----------
    d_model : int
        Width of the input and the output.
    n_heads : int
        Number of heads; must divide `d_model`.
    rng : numpy.random.Generator
        Draws the four weight matrices.
    bias : bool, default True
        Whether the four projections add a vector; it starts at zero.

    Attributes
    ----------
    query : Linear
        The projection W_q. Weights are stored (in, out), here and below.
    key : Linear
        W_k.
    value : Linear
        W_v.
    output : Linear
        W_o.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong kind, or `n_heads` does not divide `d_model`.

    Examples
    --------
    >>> attention = MultiHeadAttention(12, 3, rng=np.random.default_rng(0))
    >>> x, memory = np.ones((2, 5, 12)), np.ones((2, 7, 12))
    >>> output, weights = attention(x, memory)
    >>> output.shape, weights.shape
    ((2, 5, 12), (2, 3, 5, 7))
    """

    def __init__(self, d_model: int, n_heads: int, *, rng: np.random.Generator, bias: bool = True):
        d_model = arguments.integer("d_model", d_model, minimum=1)
        self.n_heads = arguments.integer("n_heads", n_heads, minimum=1)
        if d_model % self.n_heads:
            raise ValueError(f"n_heads must divide d_model = {d_model}, got {n_heads}")
        self.query = Linear(d_model, d_model, rng=rng, bias=bias)
        self.key = Linear(d_model, d_model, rng=rng, bias=bias)
        self.value = Linear(d_model, d_model, rng=rng, bias=bias)
        self.output = Linear(d_model, d_model, rng=rng, bias=bias)

    def __call__(
        self,
        query: ArrayLike,
        key: ArrayLike | None = None,
        value: ArrayLike | None = None,
        *,
        mask: ArrayLike | None = None,
        bias: ArrayLike | None = None,
    ) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Let every query attend to the keys.

        Parameters
        ----------
        query : array_like, shape (batch, query, d_model)
        key : array_like, shape (batch, key, d_model), optional
            `query` when not given: self-attention.
        value : array_like, shape (batch, key, d_model), optional
            `key` when not given.
        mask, bias : array_like, optional
            As in `scaled_dot_product_attention`; the scores are ``(batch, heads, query, key)``.

        Returns
        -------
        output : ndarray, shape (batch, query, d_model), dtype of `query`
        weights : ndarray, shape (batch, heads, query, key), dtype of `query`
            One map for each head.

        Raises
        ------
        TypeError
            If an array does not hold real numbers, `mask` is not boolean, or `value` is given
            without `key`.
        ValueError
            If a shape does not fit.
        """
        if key is None and value is not None:
            raise TypeError("value must come with key, got value alone")
        key = query if key is None else key
        given = {"query": query, "key": key, "value": key if value is None else value}
        q, k, v = (self._sequences(name, array) for name, array in given.items())
        if len({len(q), len(k), len(v)}) > 1 or k.shape != v.shape:
            raise ValueError(
                f"query, key and value must share their batch, and key and value their length, "
                f"got {q.shape}, {k.shape} and {v.shape}"
            )
        heads, _ = self.project(q, k, v)
        output, tape = self.attend(*heads, mask=mask, bias=bias)
        return output.astype(q.dtype, copy=False), tape.weights.astype(q.dtype, copy=False)

    def _sequences(self, name: str, value: ArrayLike) -> NDArray[np.floating]:
        array = arguments.float_array(name, value)
        width = len(self.query.weight)
        if array.ndim != 3 or array.shape[-1] != width:
            raise ValueError(
                f"{name} must have shape (batch, length, d_model = {width}), got {array.shape}"
            )
        return array

    def project(self, *inputs: NDArray[np.floating]) -> tuple[list[NDArray[np.floating]], Any]:
        """Project query, key and value, and cut each into heads: (batch, heads, length, head_dim).

        Between this step and `attend` is where a position can enter the attention itself.
        """
        maps = (self.query, self.key, self.value)
        projected = [linear.forward(x) for linear, x in zip(maps, inputs, strict=True)]
        return [split_heads(y, self.n_heads) for y, _ in projected], [tape for _, tape in projected]

    def project_backward(
        self, tape: Any, grad_heads: Sequence[NDArray[np.floating]]
    ) -> tuple[list[NDArray[np.floating]], Gradients]:
        """Send the gradients of the three cut projections back to query, key and value."""
        grad_inputs, gradients = [], Gradients()
        names = ("query", "key", "value")
        for name, linear_tape, grad in zip(names, tape, grad_heads, strict=True):
            grad_input, inner = getattr(self, name).backward(linear_tape, merge_heads(grad))
            grad_inputs.append(grad_input)
            gradients |= under(name, inner)
        return grad_inputs, gradients

    def attend(
        self,
        query: NDArray[np.floating],
        key: NDArray[np.floating],
        value: NDArray[np.floating],
        *,
        mask: ArrayLike | None = None,
        bias: ArrayLike | None = None,
    ) -> tuple[NDArray[np.floating], AttentionTape]:
        """Attend within each head, lay the heads side by side and mix them with W_o."""
        mixed, weights = scaled_dot_product_attention(query, key, value, mask=mask, bias=bias)
        output, merged = self.output.forward(merge_heads(mixed))
        return output, AttentionTape(query, key, value, weights, merged)

    def attend_backward(
        self, tape: AttentionTape, grad: NDArray[np.floating]
    ) -> tuple[tuple[NDArray[np.floating], ...], Gradients]:
        """Return the gradients of query, key, value (all in heads) and scores, and those of W_o."""
        grad, output = self.output.backward(tape.merged, grad)
        grad = split_heads(grad, self.n_heads)
        grads = attention_backward(grad, tape.query, tape.key, tape.value, tape.weights)
        return grads, under("output", output)
