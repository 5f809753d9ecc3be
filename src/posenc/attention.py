"""Scaled dot-product attention: each query takes a weighted mean of the values.

Axes are ``(batch, heads, query, key)`` for scores and weights and ``(batch, heads, length,
head_dim)`` for queries, keys and values. Nothing in this module knows an order: reorder the keys
and values together, and every output stays what it was.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _arguments as arguments


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
