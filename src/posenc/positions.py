"""Positions: which number each token gets, and how its encoding joins its embedding.

The encoding must meet the right axis of the embeddings. NumPy would broadcast many wrong shapes
without a word, so the two ways of joining accept exactly the shapes that mean something.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _arguments as arguments


def position_ids(
    mask: ArrayLike | None = None, *, length: int | None = None, offset: int = 0
) -> NDArray[np.int64]:
    """Count the real tokens of each row, whatever the side of the padding.

    Parameters
    ----------
    mask : array_like, shape (batch, length), bool
        ``True`` at real tokens, ``False`` at padding.
    length : int
        Number of tokens when there is no padding. Give exactly one of `mask` and `length`.
    offset : int
        Number of the first real token: 0, or the number of cached keys while decoding.

    Returns
    -------
    ndarray, int64
        Shape ``(batch, length)`` for a mask, ``(length,)`` for a length. Padding gets 0, a
        position that a mask must keep from being read.

    Raises
    ------
    TypeError
        If both or neither of `mask` and `length` are given, or `mask` is not boolean.
    ValueError
        If `mask` does not have two axes, or `length` or `offset` is negative.

    Examples
    --------
    >>> position_ids([[False, False, True, True], [True, True, True, False]])
    array([[0, 0, 0, 1],
           [0, 1, 2, 0]])
    >>> position_ids(length=3, offset=5)
    array([5, 6, 7])
    """
    offset = arguments.integer("offset", offset, minimum=0)
    if (mask is None) == (length is None):
        raise TypeError(
            f"give exactly one of mask and length, got {'neither' if mask is None else 'both'}"
        )
    if mask is None:
        return np.arange(arguments.integer("length", length, minimum=0)) + offset
    real = arguments.boolean_array("mask", mask)
    if real.ndim != 2:
        raise ValueError(f"mask must have shape (batch, length), got {real.shape}")
    return np.where(real, np.cumsum(real, axis=1) - 1 + offset, 0)


def packed_position_ids(lengths: ArrayLike) -> NDArray[np.int64]:
    """Count the tokens of packed documents: every document starts again at 0.

    Parameters
    ----------
    lengths : array_like, shape (documents,), integers
        Number of tokens of each document, in the order they are packed.

    Returns
    -------
    ndarray, shape (total,), int64

    Raises
    ------
    TypeError, ValueError
        If a length is not a non-negative integer.

    Notes
    -----
    Numbering alone does not keep documents apart: `posenc.masks.document_mask` does.

    Examples
    --------
    >>> packed_position_ids([3, 4])
    array([0, 1, 2, 0, 1, 2, 3])
    """
    lengths = arguments.integer_array("lengths", lengths, ndim=1, minimum=0)
    starts = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) - np.repeat(starts, lengths)


def add_positions(embeddings: ArrayLike, encoding: ArrayLike) -> NDArray[np.floating]:
    """Add to each token's embedding the encoding of its position: ``H = E + P``.

    Parameters
    ----------
    embeddings : array_like, shape (..., length, d_model), floating point
        Usually ``(batch, length, d_model)``.
    encoding : array_like, floating point
        Shape ``(length, d_model)``, the same for every sequence, or the full shape of
        `embeddings`, for positions that differ from row to row.

    Returns
    -------
    ndarray, shape and dtype of `embeddings`

    Raises
    ------
    TypeError
        If either array is not floating point: integers are token ids, not embeddings.
    ValueError
        If `encoding` has any other shape, even one that NumPy would broadcast.

    Notes
    -----
    Vaswani et al. (2017), section 3.5. They also multiply the embeddings by ``sqrt(d_model)``
    first (section 3.4) and apply dropout to the sum (section 5.4).

    Examples
    --------
    >>> add_positions(np.zeros((2, 3, 4)), np.ones((3, 4))).shape
    (2, 3, 4)
    """
    embeddings, encoding = _embeddings_and_encoding("add_positions", embeddings, encoding)
    if encoding.shape not in (embeddings.shape[-2:], embeddings.shape):
        raise ValueError(
            f"add_positions: encoding must have shape {embeddings.shape[-2:]} = (length, d_model) "
            f"or {embeddings.shape} to be added to embeddings {embeddings.shape}, got "
            f"{encoding.shape}{_likely_cause(embeddings.shape, encoding.shape)}"
        )
    return embeddings + encoding.astype(embeddings.dtype)


def concat_positions(embeddings: ArrayLike, encoding: ArrayLike) -> NDArray[np.floating]:
    """Put each position's encoding beside the token's embedding instead of adding it.

    Parameters
    ----------
    embeddings : array_like, shape (..., length, d_model), floating point
    encoding : array_like, floating point
        Shape ``(length, width)``, the same for every sequence, or the leading axes of
        `embeddings` followed by any width.

    Returns
    -------
    ndarray, shape (..., length, d_model + width), dtype of `embeddings`

    Raises
    ------
    TypeError
        If either array is not floating point.
    ValueError
        If the leading axes do not agree.

    Examples
    --------
    >>> concat_positions(np.zeros((2, 3, 4)), np.ones((3, 6))).shape
    (2, 3, 10)
    """
    embeddings, encoding = _embeddings_and_encoding("concat_positions", embeddings, encoding)
    leading = embeddings.shape[:-1]
    if encoding.ndim < 2 or encoding.shape[:-1] not in (leading[-1:], leading):
        raise ValueError(
            f"concat_positions: encoding must have shape ({leading[-1]}, width) = (length, width) "
            f"or {(*leading, 'width')} to stand beside embeddings {embeddings.shape}, got "
            f"{encoding.shape}"
        )
    encoding = np.broadcast_to(encoding, (*leading, encoding.shape[-1]))
    return np.concatenate([embeddings, encoding.astype(embeddings.dtype)], axis=-1)


def _embeddings_and_encoding(
    call: str, embeddings: ArrayLike, encoding: ArrayLike
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    arrays = {"embeddings": np.asarray(embeddings), "encoding": np.asarray(encoding)}
    for name, array in arrays.items():
        if not np.issubdtype(array.dtype, np.floating):
            raise TypeError(
                f"{call}: {name} must be floating point, got dtype {array.dtype} with shape "
                f"{array.shape}; look token ids up in the embedding table first"
            )
    arguments.with_axes(f"{call}: embeddings", arrays["embeddings"], 2, "(..., length, d_model)")
    return arrays["embeddings"], arrays["encoding"]


def _likely_cause(embeddings: tuple[int, ...], encoding: tuple[int, ...]) -> str:
    """Name the usual mistake behind a pair of shapes, for the end of an error message."""
    length, d_model = embeddings[-2:]
    if len(encoding) == 3 and encoding[1:] == (1, d_model):
        return (
            ". This looks like a time-first table (length, 1, d_model): select rows by the length "
            "axis and drop the middle axis, encoding[:length, 0]"
        )
    if encoding == (d_model, length):
        return ". It is transposed: use encoding.T"
    if len(encoding) == 2 and encoding[1] == d_model and encoding[0] > length:
        return f". The table is longer than the sequence: use encoding[:{length}]"
    if len(encoding) == 2 and encoding[1] == d_model:
        return f". It has rows for {encoding[0]} positions, the sequence has {length}"
    if len(encoding) == 3 and encoding == (1, length, d_model):
        return ". Drop the leading axis: encoding[0]"
    return ""
