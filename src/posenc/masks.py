"""Masks: who may attend to whom. Boolean, and ``True`` always means *may attend*.

Over (query, key) everything is aligned at the bottom right: the last query stands at the last
key, so query ``i`` stands at key position ``i + (key_length − query_length)``. That is what a
decoder with cached keys needs, where the queries are the newest positions.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _arguments as arguments


def causal_mask(query_length: int, key_length: int | None = None) -> NDArray[np.bool_]:
    """Let each query see its own position and what came before.

    Parameters
    ----------
    query_length : int
        Number of queries, at least 0.
    key_length : int, optional
        Number of keys; `query_length` when not given. If it is larger, the queries are the last
        positions; if it is smaller, the first queries see no key.

    Returns
    -------
    ndarray, shape (query_length, key_length), bool
        ``True`` where key ``j <= i + (key_length − query_length)``.

    Raises
    ------
    TypeError, ValueError
        If a length is not a non-negative integer.

    Notes
    -----
    Vaswani et al. (2017), section 3.2.3. torch's ``is_causal=True`` aligns at the top left
    instead; the two agree when the lengths are equal.

    Examples
    --------
    >>> causal_mask(2, 5).astype(int)
    array([[1, 1, 1, 1, 0],
           [1, 1, 1, 1, 1]])
    """
    query_length = arguments.integer("query_length", query_length, minimum=0)
    if key_length is None:
        key_length = query_length
    key_length = arguments.integer("key_length", key_length, minimum=0)
    return np.tri(query_length, key_length, key_length - query_length, dtype=np.bool_)


def padding_mask(lengths: ArrayLike, max_length: int | None = None) -> NDArray[np.bool_]:
    """Mark the real tokens of sequences that were padded on the right.

    Parameters
    ----------
    lengths : array_like, shape (batch,), integers
        Number of real tokens in each sequence.
    max_length : int, optional
        Padded length; the largest of `lengths` when not given.

    Returns
    -------
    ndarray, shape (batch, max_length), bool
        ``True`` at real tokens. For attention write ``mask[:, None, None, :]``: it hides *keys*
        from every head and every query.

    Raises
    ------
    TypeError, ValueError
        If a length is not an integer, is negative or exceeds `max_length`.

    Examples
    --------
    >>> padding_mask([1, 3]).astype(int)
    array([[1, 0, 0],
           [1, 1, 1]])
    """
    lengths = arguments.integer_array("lengths", lengths, ndim=1, minimum=0)
    longest = int(lengths.max(initial=0))
    if max_length is None:
        max_length = longest
    max_length = arguments.integer("max_length", max_length, minimum=0)
    if longest > max_length:
        raise ValueError(f"lengths must not exceed max_length {max_length}, got {longest}")
    return np.arange(max_length) < lengths[:, np.newaxis]


def document_mask(lengths: ArrayLike) -> NDArray[np.bool_]:
    """Keep documents that are packed into one row from seeing one another.

    Parameters
    ----------
    lengths : array_like, shape (documents,), integers
        Number of tokens of each document, in the order they are packed.

    Returns
    -------
    ndarray, shape (total, total), bool
        ``True`` inside a document. It is not causal: combine it with `causal_mask` for a decoder.

    Raises
    ------
    TypeError, ValueError
        If a length is not a non-negative integer.

    Examples
    --------
    >>> document_mask([1, 2]).astype(int)
    array([[1, 0, 0],
           [0, 1, 1],
           [0, 1, 1]])
    """
    lengths = arguments.integer_array("lengths", lengths, ndim=1, minimum=0)
    document = np.repeat(np.arange(lengths.size), lengths)
    return document[:, np.newaxis] == document


def combine(*masks: ArrayLike) -> NDArray[np.bool_]:
    """Join masks with *and*: a query may attend where every mask lets it.

    Parameters
    ----------
    *masks : array_like, bool
        Each of shape ``(query, key)`` or with one common larger number of axes, usually
        ``(batch, heads, query, key)``. The leading axes and the query axis may have size 1, which
        stands for *the same for all*; that is never guessed for a mask of two axes.

    Returns
    -------
    ndarray, bool
        Of the common shape.

    Raises
    ------
    TypeError
        If there is no mask or one of them is not boolean.
    ValueError
        If the shapes do not belong together; a ``(batch, length)`` padding mask must be written
        ``mask[:, None, None, :]`` first.

    Examples
    --------
    >>> padding = padding_mask([2, 3])[:, None, None, :]
    >>> combine(causal_mask(3), padding).shape
    (2, 1, 3, 3)
    """
    if not masks:
        raise TypeError("combine needs at least one mask, got none")
    arrays = [arguments.boolean_array(f"masks[{n}]", mask) for n, mask in enumerate(masks)]
    for number, array in enumerate(arrays):
        arguments.with_axes(f"masks[{number}]", array, 2, "(query, key) or (…, query, key)")
    most = max(array.ndim for array in arrays)
    lengths = {array.shape for array in arrays if array.ndim == 2}
    keys = {array.shape[-1] for array in arrays}
    if len(lengths) > 1 or len(keys) > 1 or any(a.ndim not in (2, most) for a in arrays):
        raise _mismatch(arrays)
    try:
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        raise _mismatch(arrays) from None
    if lengths and lengths != {shape[-2:]}:
        raise _mismatch(arrays)
    return np.logical_and.reduce([np.broadcast_to(array, shape) for array in arrays])


def _mismatch(arrays: list[NDArray[np.bool_]]) -> ValueError:
    shapes = ", ".join(str(array.shape) for array in arrays)
    return ValueError(
        f"masks must have shape (query, key) or one common (batch, heads, query, key), got "
        f"{shapes}; write a (batch, length) padding mask as mask[:, None, None, :]"
    )
