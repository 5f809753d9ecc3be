"""Relative position inside attention: what a score gains from ``key position − query position``.

Three ways to let attention see distances without touching the embeddings: ALiBi subtracts a
fixed slope times the distance, T5 adds a learned number per bucket of distances, and Shaw et al.
compare the query with a learned vector per clipped distance.

Queries and keys are aligned at the bottom right, as in `posenc.masks`: query ``i`` stands at key
position ``i + (key_length − query_length)``. A number that depends on the relative position alone
is the same all along a diagonal, so a whole ``(query, key)`` table holds only
``query_length + key_length − 1`` different numbers (Toeplitz, in the words of linear algebra).
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, DTypeLike, NDArray

from posenc import _arguments as arguments


def relative_positions(query_length: int, key_length: int) -> NDArray[np.int64]:
    """Give key position minus query position for every pair.

    Parameters
    ----------
    query_length, key_length : int
        Numbers of queries and keys, at least 0.

    Returns
    -------
    ndarray, shape (query_length, key_length), int64
        Negative where the key comes before the query.

    Raises
    ------
    TypeError, ValueError
        If a length is not a non-negative integer.

    Examples
    --------
    >>> relative_positions(2, 4)
    array([[-2, -1,  0,  1],
           [-3, -2, -1,  0]])
    """
    query_length, key_length = _lengths(query_length, key_length)
    query = np.arange(query_length) + key_length - query_length
    return np.arange(key_length) - query[:, np.newaxis]


def _lengths(query_length: int, key_length: int) -> tuple[int, int]:
    return (
        arguments.integer("query_length", query_length, minimum=0),
        arguments.integer("key_length", key_length, minimum=0),
    )


def _diagonals(query_length: int, key_length: int) -> NDArray[np.int64]:
    """Give the relative position of each diagonal, from the oldest key to the newest."""
    return np.arange(1 - key_length, max(query_length, 1))


def _spread(values: NDArray, query_length: int, key_length: int) -> NDArray:
    """Lay one value per diagonal, ``(…, diagonals)``, out over ``(…, query, key)`` as a view.

    Row ``i`` of the table is a window of `key_length` values that ends where the row before it
    ended, less one: the same numbers in memory, read again one step to the left.
    """
    windows = sliding_window_view(values, key_length, axis=-1)
    return windows[..., :query_length, :][..., ::-1, :]


def _sum_diagonals(table: NDArray) -> NDArray:
    """Add up each diagonal of ``(…, query, key)``: what `_spread` reads many times, summed."""
    query_length, key_length = table.shape[-2:]
    sums = np.zeros((*table.shape[:-2], query_length + key_length - 1), table.dtype)
    for query in range(query_length):
        start = query_length - 1 - query
        sums[..., start : start + key_length] += table[..., query, :]
    return sums


# --- ALiBi: a fixed slope per head ----------------------------------------------------------------


def alibi_slopes(n_heads: int) -> NDArray[np.float64]:
    """Give each head its slope: halving steps from head to head, from steep to flat.

    For a power of two, head ``h = 1 … n`` gets ``2^(−8h / n)``. For any other number the rule of
    the authors' released code is used: the slopes of the next lower power of two, then every
    other slope of twice that power until all heads have one. The order is therefore not monotone.

    Parameters
    ----------
    n_heads : int
        Number of heads, at least 1.

    Returns
    -------
    ndarray, shape (n_heads,), float64
        Score lost per position of distance.

    Raises
    ------
    TypeError, ValueError
        If `n_heads` is not an integer of at least 1.

    Notes
    -----
    Press et al., *Train Short, Test Long* (2022), section 3 and its code. Applying the formula of
    the paper to other head counts gives different slopes, which do not fit released weights.

    Examples
    --------
    >>> alibi_slopes(4)
    array([0.25      , 0.0625    , 0.015625  , 0.00390625])
    >>> alibi_slopes(3)
    array([0.0625    , 0.00390625, 0.25      ])
    """
    n_heads = arguments.integer("n_heads", n_heads, minimum=1)
    power = 2 ** (n_heads.bit_length() - 1)  # the largest power of two up to n_heads
    own = 2.0 ** (-8 * np.arange(1, power + 1) / power)
    between = 2.0 ** (-8 * np.arange(1, 2 * power, 2) / (2 * power))
    return np.concatenate([own, between])[:n_heads]


def alibi_bias(
    n_heads: int,
    query_length: int,
    key_length: int,
    *,
    causal: bool = True,
    dtype: DTypeLike = np.float64,
) -> NDArray[np.floating]:
    """Subtract from each score its head's slope times the distance of query and key.

    Parameters
    ----------
    n_heads : int
        Number of heads, at least 1.
    query_length, key_length : int
        Numbers of queries and keys, at least 0.
    causal : bool
        Put ``−inf`` at keys that come after the query. If false, ``−slope · |distance|``
        everywhere.
    dtype : dtype
        Floating-point dtype of the result.

    Returns
    -------
    ndarray, shape (n_heads, query_length, key_length)
        A read-only view of ``query_length + key_length − 1`` numbers per head: copy it to write.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong kind or outside its range.

    Notes
    -----
    Press et al. (2022), section 3. The released code repeats one row of biases for all queries:
    under a causal mask that adds a constant to each query's scores, which softmax ignores.

    Examples
    --------
    >>> alibi_bias(4, 2, 3)[0]
    array([[-0.25,  0.  ,  -inf],
           [-0.5 , -0.25,  0.  ]])
    >>> alibi_bias(4, 2, 3, causal=False)[0]
    array([[-0.25,  0.  , -0.25],
           [-0.5 , -0.25,  0.  ]])
    """
    slopes = alibi_slopes(n_heads)
    query_length, key_length = _lengths(query_length, key_length)
    causal = arguments.boolean("causal", causal)
    dtype = arguments.float_dtype("dtype", dtype)
    relative = _diagonals(query_length, key_length)
    values = slopes[:, np.newaxis] * -np.abs(relative)
    if causal:
        values[:, relative > 0] = -np.inf
    return _spread(values.astype(dtype), query_length, key_length)


# --- T5: a learned number per bucket of distances -------------------------------------------------


def t5_buckets(
    relative_positions: ArrayLike,
    *,
    bidirectional: bool = True,
    num_buckets: int = 32,
    max_distance: int = 128,
) -> NDArray[np.int64]:
    """Sort relative positions into buckets: one each for near keys, ever wider ones for far keys.

    Half of a direction's buckets hold a single distance each; the other half grows
    logarithmically up to `max_distance`, and the last bucket takes everything beyond.

    Parameters
    ----------
    relative_positions : array_like of integers, any shape
        Key position minus query position.
    bidirectional : bool
        Give the upper half of the buckets to keys after the query. If false, all buckets are for
        keys before it, and later keys share bucket 0 with the query's own position.
    num_buckets : int
        Number of buckets: at least 2, or an even number of at least 4 when bidirectional.
    max_distance : int
        Distance from which the last bucket takes all; greater than the number of buckets that
        hold one distance (a quarter of `num_buckets` when bidirectional, else half).

    Returns
    -------
    ndarray, shape of `relative_positions`, int64
        In ``0 … num_buckets − 1``.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong kind or outside its range.

    Notes
    -----
    Raffel et al., *Exploring the Limits of Transfer Learning* (T5, 2020), section 2.1, and its
    released code.

    Examples
    --------
    >>> t5_buckets([-200, -8, -1, 0, 1, 8, 200])
    array([15,  8,  1,  0, 17, 24, 31])
    >>> t5_buckets([-200, -8, -1, 0, 1, 8, 200], bidirectional=False)
    array([31,  8,  1,  0,  0,  0,  0])
    """
    relative = arguments.integer_array("relative_positions", relative_positions)
    n_buckets, n_single = _bucket_counts(bidirectional, num_buckets, max_distance)
    if bidirectional:
        first = np.where(relative > 0, n_buckets, 0)
        distance = np.abs(relative)
    else:
        first = np.zeros_like(relative)
        distance = np.maximum(-relative, 0)
    # 0 at distance n_single, 1 at max_distance, and equal steps for equal ratios in between.
    far = np.log(np.maximum(distance, n_single) / n_single) / np.log(max_distance / n_single)
    wide = np.minimum(n_single + (far * (n_buckets - n_single)).astype(np.int64), n_buckets - 1)
    return first + np.where(distance < n_single, distance, wide)


def _bucket_counts(bidirectional: bool, num_buckets: int, max_distance: int) -> tuple[int, int]:
    """Give the number of buckets of one direction, and how many of them hold one distance."""
    bidirectional = arguments.boolean("bidirectional", bidirectional)
    num_buckets = arguments.integer("num_buckets", num_buckets, minimum=4 if bidirectional else 2)
    if bidirectional and num_buckets % 2:
        raise ValueError(f"num_buckets must be even when bidirectional, got {num_buckets}")
    n_buckets = num_buckets // 2 if bidirectional else num_buckets
    n_single = n_buckets // 2
    arguments.integer("max_distance", max_distance, minimum=n_single + 1)
    return n_buckets, n_single


def t5_bias(
    table: ArrayLike,
    query_length: int,
    key_length: int,
    *,
    bidirectional: bool = True,
    max_distance: int = 128,
) -> NDArray[np.floating]:
    """Look up each head's learned bias for the bucket of every pair of query and key.

    Parameters
    ----------
    table : array_like, shape (num_buckets, n_heads)
        Learned numbers, one per bucket and head. One table serves all layers of a T5 stack.
    query_length, key_length : int
        Numbers of queries and keys, at least 0.
    bidirectional : bool
        As for `t5_buckets`: true in an encoder, false in a decoder.
    max_distance : int
        Distance from which the last bucket takes all.

    Returns
    -------
    ndarray, shape (n_heads, query_length, key_length), dtype of `table`
        A read-only view of ``query_length + key_length − 1`` numbers per head: nothing of the size
        ``query_length × key_length`` is allocated. Copy it to write. It hides no key: a decoder
        needs a causal mask as well.

    Raises
    ------
    TypeError, ValueError
        If `table` is not a finite array of two axes, or another argument is wrong.

    Notes
    -----
    Raffel et al. (2020), section 2.1. T5 adds this bias in self-attention only, and to scores
    that are not divided by ``sqrt(head_dim)``.

    Examples
    --------
    >>> table = np.arange(8.0)[:, np.newaxis]  # one head whose bias is the bucket's number
    >>> t5_bias(table, 2, 4, max_distance=16)[0]
    array([[2., 1., 0., 5.],
           [2., 2., 1., 0.]])
    """
    table = arguments.float_array("table", table)
    if table.ndim != 2:
        raise ValueError(f"table must have shape (num_buckets, n_heads), got {table.shape}")
    query_length, key_length = _lengths(query_length, key_length)
    buckets = t5_buckets(
        _diagonals(query_length, key_length),
        bidirectional=bidirectional,
        num_buckets=len(table),
        max_distance=max_distance,
    )
    return _spread(table[buckets].T, query_length, key_length)


def t5_bias_gradient(
    grad_bias: ArrayLike,
    num_buckets: int,
    *,
    bidirectional: bool = True,
    max_distance: int = 128,
) -> NDArray[np.floating]:
    """Carry the gradient of a bias back to the table it was looked up in.

    An entry of the table was added to every score of its bucket, in every batch item, so its
    gradient is the sum of theirs: along the diagonals first, then over the diagonals of a bucket.

    Parameters
    ----------
    grad_bias : array_like, shape (..., n_heads, query, key)
        Gradient of the loss with respect to the bias, or to the scores that it was added to;
        leading axes such as the batch are summed.
    num_buckets : int
        Number of rows of the table.
    bidirectional : bool
        As in the call of `t5_bias`.
    max_distance : int
        As in the call of `t5_bias`.

    Returns
    -------
    ndarray, shape (num_buckets, n_heads), dtype of `grad_bias`

    Raises
    ------
    TypeError, ValueError
        If `grad_bias` has fewer than three axes or is not finite, or another argument is wrong.

    Examples
    --------
    >>> t5_bias_gradient(np.ones((1, 2, 4)), 8, max_distance=16)[:, 0]
    array([2., 2., 3., 0., 0., 1., 0., 0.])
    """
    grad_bias = arguments.float_array("grad_bias", grad_bias)
    arguments.with_axes("grad_bias", grad_bias, 3, "(..., n_heads, query, key)")
    n_heads, query_length, key_length = grad_bias.shape[-3:]
    buckets = t5_buckets(
        _diagonals(query_length, key_length),
        bidirectional=bidirectional,
        num_buckets=num_buckets,
        max_distance=max_distance,
    )
    gradient = np.zeros((num_buckets, n_heads), grad_bias.dtype)
    if grad_bias.size:
        per_head = grad_bias.reshape(-1, n_heads, query_length, key_length).sum(axis=0)
        np.add.at(gradient, buckets, _sum_diagonals(per_head).T)
    return gradient


# --- Shaw et al.: a learned vector per clipped distance -------------------------------------------


def clipped_relative_positions(
    query_length: int, key_length: int, max_distance: int
) -> NDArray[np.int64]:
    """Give key position minus query position, where all far keys count as equally far.

    Parameters
    ----------
    query_length, key_length : int
        Numbers of queries and keys, at least 0.
    max_distance : int
        Largest distance that is told from larger ones, at least 0.

    Returns
    -------
    ndarray, shape (query_length, key_length), int64
        In ``−max_distance … max_distance``. Add `max_distance` before indexing a table of
        ``2 · max_distance + 1`` rows.

    Raises
    ------
    TypeError, ValueError
        If an argument is not a non-negative integer.

    Notes
    -----
    Shaw et al., *Self-Attention with Relative Position Representations* (2018), section 3.2.

    Examples
    --------
    >>> clipped_relative_positions(2, 5, 2)
    array([[-2, -2, -1,  0,  1],
           [-2, -2, -2, -1,  0]])
    """
    max_distance = arguments.integer("max_distance", max_distance, minimum=0)
    return relative_positions(query_length, key_length).clip(-max_distance, max_distance)


def relative_key_scores(
    query: ArrayLike, table: ArrayLike, key_length: int
) -> NDArray[np.floating]:
    """Score each query against the vector of its relative position to every key.

    Each query meets only ``2 · max_distance + 1`` different vectors. They are multiplied once,
    and the products are then handed to the keys, so no array of shape
    ``(query, key, head_dim)`` is ever made.

    Parameters
    ----------
    query : array_like, shape (..., query, head_dim)
        Usually ``(batch, heads, query, head_dim)``.
    table : array_like, shape (2 · max_distance + 1, head_dim)
        Learned vectors ``a^K``, from ``−max_distance`` to ``max_distance``, shared by all heads.
    key_length : int
        Number of keys, at least 0.

    Returns
    -------
    ndarray, shape (..., query, key)
        ``query_i · table[clip(j − i) + max_distance]`` with ``j − i`` as in
        `clipped_relative_positions`. It is not scaled: divide it by ``sqrt(head_dim)`` and pass
        it as the `bias` of attention.

    Raises
    ------
    TypeError, ValueError
        If an array does not hold finite real numbers, the number of rows of `table` is even, or
        its width differs from that of `query`.

    Notes
    -----
    Shaw et al. (2018), equations 4 and 5. With ``g`` the gradient of the loss with respect to the
    result, the gradient with respect to `query` is ``relative_value_output(g, table)``, and that
    with respect to `table` is ``relative_table_gradient(g, query, max_distance)``.

    Examples
    --------
    >>> query = np.ones((2, 1))
    >>> relative_key_scores(query, [[-1.0], [0.0], [1.0]], key_length=3)
    array([[-1.,  0.,  1.],
           [-1., -1.,  0.]])
    """
    query = arguments.float_array("query", query)
    arguments.with_axes("query", query, 2, "(..., query, head_dim)")
    table, max_distance = _relative_table(table)
    if table.shape[1] != query.shape[-1]:
        raise ValueError(f"table must have head_dim {query.shape[-1]} columns, got {table.shape}")
    query_length = query.shape[-2]
    row_of_key = clipped_relative_positions(query_length, key_length, max_distance) + max_distance
    return (query @ table.T)[..., np.arange(query_length)[:, np.newaxis], row_of_key]


def relative_value_output(weights: ArrayLike, table: ArrayLike) -> NDArray[np.floating]:
    """Mix the vectors of the relative positions by the attention weights.

    The weights of keys at the same clipped distance are added up first, so no array of shape
    ``(query, key, head_dim)`` is ever made.

    Parameters
    ----------
    weights : array_like, shape (..., query, key)
        Attention weights, usually ``(batch, heads, query, key)``.
    table : array_like, shape (2 · max_distance + 1, head_dim)
        Learned vectors ``a^V``, from ``−max_distance`` to ``max_distance``, shared by all heads.

    Returns
    -------
    ndarray, shape (..., query, head_dim)
        ``Σ_j weights_ij table[clip(j − i) + max_distance]``, to be added to the output of
        attention.

    Raises
    ------
    TypeError, ValueError
        If an array does not hold finite real numbers or the number of rows of `table` is even.

    Notes
    -----
    Shaw et al. (2018), equation 3. With ``g`` the gradient of the loss with respect to the
    result, the gradient with respect to `weights` is ``relative_key_scores(g, table,
    key_length)``, and that with respect to `table` is ``relative_table_gradient(weights, g,
    max_distance)``.

    Examples
    --------
    >>> weights = [[0.2, 0.3, 0.5]]
    >>> relative_value_output(weights, [[1.0, 0.0], [0.0, 1.0], [7.0, 7.0]])
    array([[0.5, 0.5]])
    """
    weights = arguments.float_array("weights", weights)
    arguments.with_axes("weights", weights, 2, "(..., query, key)")
    table, max_distance = _relative_table(table)
    return _sum_by_distance(weights, max_distance) @ table


def relative_table_gradient(
    over_pairs: ArrayLike, over_queries: ArrayLike, max_distance: int
) -> NDArray[np.floating]:
    """Give the gradient of a table of relative vectors, for keys or for values.

    Parameters
    ----------
    over_pairs : array_like, shape (..., query, key)
        Gradient of the scores for a key table; the attention weights for a value table.
    over_queries : array_like, shape (..., query, head_dim)
        The queries for a key table; the gradient of the output for a value table.
    max_distance : int
        The table has ``2 · max_distance + 1`` rows; at least 0.

    Returns
    -------
    ndarray, shape (2 · max_distance + 1, head_dim)
        Summed over all leading axes and all pairs at the same clipped distance.

    Raises
    ------
    TypeError, ValueError
        If the arrays do not hold finite real numbers, or their axes before the last differ.

    Examples
    --------
    >>> relative_table_gradient([[1.0, 2.0, 4.0]], [[1.0, 10.0]], 1)
    array([[ 3., 30.],
           [ 4., 40.],
           [ 0.,  0.]])
    """
    over_pairs = arguments.float_array("over_pairs", over_pairs)
    over_queries = arguments.float_array("over_queries", over_queries)
    arguments.with_axes("over_pairs", over_pairs, 2, "(..., query, key)")
    max_distance = arguments.integer("max_distance", max_distance, minimum=0)
    if over_pairs.shape[:-1] != over_queries.shape[:-1]:
        raise ValueError(
            f"over_pairs and over_queries must have equal axes before the last, got "
            f"{over_pairs.shape} and {over_queries.shape}"
        )
    sums = _sum_by_distance(over_pairs, max_distance)
    n_rows, head_dim = sums.shape[-1], over_queries.shape[-1]
    return sums.reshape(-1, n_rows).T @ over_queries.reshape(-1, head_dim)


def _relative_table(table: ArrayLike) -> tuple[NDArray[np.floating], int]:
    """Give the table and the largest distance it knows."""
    table = arguments.float_array("table", table)
    if table.ndim != 2 or table.shape[0] % 2 == 0:
        raise ValueError(
            f"table must have shape (2 · max_distance + 1, head_dim), an odd number of rows, got "
            f"{table.shape}"
        )
    return table, table.shape[0] // 2


def _sum_by_distance(over_pairs: NDArray, max_distance: int) -> NDArray:
    """Add up the keys of each query by clipped distance: ``(…, query, 2 · max_distance + 1)``."""
    query_length, key_length = over_pairs.shape[-2:]
    n_rows = 2 * max_distance + 1
    sums = np.empty((*over_pairs.shape[:-1], n_rows), over_pairs.dtype)
    row_of_key = clipped_relative_positions(query_length, key_length, max_distance) + max_distance
    for query, rows in enumerate(row_of_key):
        belongs = rows[:, np.newaxis] == np.arange(n_rows)  # (key, row), one true entry per key
        sums[..., query, :] = over_pairs[..., query, :] @ belongs.astype(over_pairs.dtype)
    return sums
