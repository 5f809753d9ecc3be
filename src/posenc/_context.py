"""What an attention knows beside its input: mask, positions, cached keys; checked at the border."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _arguments as arguments
from posenc.layers import Array
from posenc.positions import position_ids


class KeyValueCache:
    """The keys and values that one self-attention has already computed.

    Its length is the position of the next query. Keys are stored as they are compared, that is
    after a rotary turn. A model makes one cache for each of its layers: `model.new_cache()`.

    Examples
    --------
    >>> cache = KeyValueCache()
    >>> key, value = cache.extend(np.ones((2, 3, 5, 4)), np.ones((2, 3, 5, 4)))
    >>> key, value = cache.extend(np.ones((2, 3, 1, 4)), np.ones((2, 3, 1, 4)))
    >>> key.shape, cache.length
    ((2, 3, 6, 4), 6)
    """

    def __init__(self) -> None:
        self.key: Array | None = None  # (B, H, length, head_dim)
        self.value: Array | None = None

    @property
    def length(self) -> int:
        """Number of cached keys."""
        return 0 if self.key is None else self.key.shape[-2]

    def extend(self, key: Array, value: Array) -> tuple[Array, Array]:
        """Append the newest keys and values, and return all of them."""
        if self.key is not None and self.value is not None:
            key = np.concatenate([self.key, key], axis=-2)
            value = np.concatenate([self.value, value], axis=-2)
        self.key, self.value = key, value
        return key, value


class Context(NamedTuple):
    """What a self-attention needs to know beside its input; checked once, at the border."""

    mask: NDArray[np.bool_] | None
    positions: NDArray
    cache: Any  # a KeyValueCache for one layer, a list of them for a stack

    @classmethod
    def checked(
        cls,
        scores: tuple[int, int, int],
        mask: ArrayLike | None,
        positions: ArrayLike | None,
        cache: KeyValueCache | None,
    ) -> "Context":
        """Check the arguments against `scores`, the numbers of rows, heads and queries.

        Positions go on from the cached ones when they are not given.
        """
        batch, heads, length = scores
        cached = 0 if cache is None else cache.length
        if cache is not None and cache.key is not None and len(cache.key) != batch:
            raise ValueError(f"cache must hold {batch} rows like the input, got {len(cache.key)}")
        if positions is None:
            positions = position_ids(length=length, offset=cached)
        arguments.float_array("positions", positions)  # refuses what no encoding can read
        positions = np.asarray(positions)
        if positions.shape not in ((length,), (batch, length)):
            raise ValueError(
                f"positions must have shape ({length},) or {(batch, length)}, got {positions.shape}"
            )
        mask = checked_mask("mask", mask, (batch, heads, length, cached + length))
        return cls(mask, positions, cache)


def checked_mask(
    name: str, mask: ArrayLike | None, scores: tuple[int, int, int, int]
) -> NDArray[np.bool_] | None:
    """Return `mask` as booleans if it lies over `scores` (B, H, Q, K)."""
    if mask is None:
        return None
    allowed = arguments.boolean_array(name, mask)
    fits = allowed.ndim == 4 and allowed.shape[-1] == scores[-1]
    fits = fits and all(a in (1, s) for a, s in zip(allowed.shape, scores, strict=True))
    if not (fits or allowed.shape == scores[2:]):
        raise ValueError(
            f"{name} must have shape (query, key) = {scores[2:]} or lie over (batch, heads, query, "
            f"key) = {scores}, got {allowed.shape}; write a (batch, key) padding mask as "
            f"{name}[:, None, None, :]"
        )
    return allowed


def checked_sequences(name: str, value: ArrayLike, width: int, rows: int | None = None) -> Array:
    """Return `value` as a float array of shape (rows, length, width)."""
    array = arguments.float_array(name, value)
    if array.ndim != 3 or array.shape[-1] != width or rows not in (None, len(array)):
        batch = "batch" if rows is None else rows
        raise ValueError(f"{name} must have shape ({batch}, length, {width}), got {array.shape}")
    return array
