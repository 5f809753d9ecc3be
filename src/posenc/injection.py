"""Where a position enters a Transformer: one small class for each encoding.

A position can act at three places, and every encoding here uses exactly one of them:

=========================  =================================================================
`embed(positions)`         a vector added to the embeddings: sinusoidal, learned
`turn(x, positions)`       queries and keys changed before they are compared: rotary (RoPE)
`bias(query, key_length)`  a number added to each score: T5, ALiBi, Shaw
=========================  =================================================================

The first two read the position numbers they are given, so padding and packing need the right
`position_ids`. The third counts from query to key (aligned at the bottom right, like every mask),
and needs no numbers: shifting a text along its row changes no distance in it.

Each class has the gradient beside the value. Shapes: B batch, L length, Q queries, K keys, H heads.
"""

import math

import numpy as np
from numpy.typing import NDArray

from posenc import _arguments as arguments
from posenc.bias import (
    alibi_bias,
    relative_key_scores,
    relative_table_gradient,
    relative_value_output,
    t5_bias,
    t5_bias_gradient,
)
from posenc.layers import Array, Gradients, Layer
from posenc.learned import LearnedEncoding
from posenc.rotary import apply_rotary
from posenc.sinusoidal import sinusoidal_encoding


class Injection(Layer):
    """No position at all, and the pattern for the others: override one of the three places.

    Attributes
    ----------
    inside_attention : bool
        Whether it acts on the scores of a layer (or not at all) instead of on its input.

    Examples
    --------
    A fourth way to number words, plugged in like the built-in ones:

    >>> class Counter(Injection):
    ...     inside_attention = False
    ...     def embed(self, positions):
    ...         return np.repeat(positions[..., np.newaxis], 4, axis=-1) / 100
    >>> Counter().embed(np.arange(3))[:, 0]
    array([0.  , 0.01, 0.02])
    """

    inside_attention = True

    def embed(self, positions: NDArray) -> Array | None:
        """Return what is added to the embeddings, shape of `positions` + (d_model,), or None."""
        return None

    def embed_backward(self, positions: NDArray, grad: Array) -> Gradients:
        """Return the gradients of the parameters behind `embed`, given that of the embeddings."""
        return {}

    def turn(self, x: Array, positions: NDArray) -> Array:
        """Return queries or keys (B, H, L, head_dim) as they stand at `positions`.

        It must be orthogonal, so that turning a gradient by the negative positions sends it back.
        """
        return x

    def bias(self, query: Array, key_length: int) -> Array | None:
        """Return what is added to the scores of `query` (B, H, Q, head_dim), or None."""
        return None

    def bias_backward(self, query: Array, grad_scores: Array) -> tuple[Array | None, Gradients]:
        """Return what `bias` adds to the gradient of `query`, and its parameters' gradients."""
        return None, {}

    def layers_reached(self, where: str | int | None, n_layers: int) -> set[int]:
        """Return the indices of the layers at which the encoding acts.

        Parameters
        ----------
        where : {"input", "every"} or int, optional
            ``"input"`` is before the first layer and the habit of encodings that are added;
            ``"every"`` is at each layer and the habit of those inside the attention. A number n is
            late: n layers run without any position; then one that is added is added once, and one
            inside the attention acts in all layers that are left.
        n_layers : int
            Number of layers of the stack.

        Returns
        -------
        set of int

        Raises
        ------
        TypeError, ValueError
            If `where` is something else, or not a place for this encoding.

        Examples
        --------
        >>> Sinusoidal(8).layers_reached(1, 3), Rotary().layers_reached(1, 3)
        ({1}, {1, 2})
        """
        if where is None:
            where = "every" if self.inside_attention else "input"
        if where == "every":
            return set(range(n_layers))
        if where == "input" and self.inside_attention:
            raise ValueError(
                f'where must be "every" or a number of layers for {type(self).__name__}, which '
                f"acts inside the attention and adds nothing to the input, got {where!r}"
            )
        if isinstance(where, str):
            arguments.one_of("where", where, ["input", "every"])
        first = 0 if where == "input" else arguments.integer("where", where, minimum=0)
        if first >= n_layers:
            raise ValueError(f"where must be below the number of layers, {n_layers}, got {where}")
        return set(range(first, n_layers)) if self.inside_attention else {first}


class Sinusoidal(Injection):
    """The fixed sinusoid of Vaswani et al. (2017), section 3.5; recomputed, never a parameter.

    Parameters
    ----------
    d_model : int
        Width of the model.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong kind or value.

    Examples
    --------
    >>> Sinusoidal(4).embed(np.arange(3)).shape
    (3, 4)
    """

    inside_attention = False

    def __init__(self, d_model: int):
        self.d_model = arguments.integer("d_model", d_model, minimum=1)

    def embed(self, positions: NDArray) -> Array:
        """Return the sinusoid at `positions`."""
        return sinusoidal_encoding(positions, self.d_model)


class Learned(Injection):
    """A trained table with a row for every position (Gehring et al. 2017; BERT and GPT use it).

    The rows are multiplied by √d_model like the token embeddings beside them, √d_model · (E + P):
    they start small, and Adam moves a number by about the learning rate, so unscaled rows would
    need many more steps to be noticed.

    Parameters
    ----------
    max_length, d_model : int
        Number of rows, and width of the model.
    rng : numpy.random.Generator
        Draws the table.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong kind or value.

    Examples
    --------
    >>> Learned(8, 4, rng=np.random.default_rng(0)).embed(np.array([[0, 1, 2], [0, 0, 1]])).shape
    (2, 3, 4)
    """

    inside_attention = False

    def __init__(self, max_length: int, d_model: int, *, rng: np.random.Generator):
        self.lookup = LearnedEncoding(max_length, d_model, rng=rng)
        self.factor = math.sqrt(d_model)

    def parameters(self) -> dict[str, Array]:
        """Return the table."""
        return {"table": self.lookup.table}

    def embed(self, positions: NDArray) -> Array:
        """Return the scaled rows at `positions`; past the last row it raises IndexError."""
        return self.factor * self.lookup(positions)

    def embed_backward(self, positions: NDArray, grad: Array) -> Gradients:
        """Add up the gradient of each row over the places where it was used."""
        return {"table": self.lookup.gradient(positions, self.factor * grad)}


class Rotary(Injection):
    """Queries and keys turned by their position (Su et al. 2021): the score sees the offset only.

    A cache stores the turned keys, so the base must stay the same while a text grows.

    Parameters
    ----------
    base : float, default 10000
        Number above 1 whose powers space the frequencies.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong kind or value.

    Examples
    --------
    >>> Rotary().turn(np.ones((2, 3, 5, 4)), np.arange(5)).shape
    (2, 3, 5, 4)
    """

    def __init__(self, base: float = 10000.0):
        self.base = arguments.real("base", base, above=1)

    def turn(self, x: Array, positions: NDArray) -> Array:
        """Turn `x` by its positions."""
        return apply_rotary(x, positions, base=self.base)


class T5(Injection):
    """A learned number for each head and bucket of distances (Raffel et al. 2020, section 2.1).

    One table for all layers, from N(0, 0.02²). A causal model has no use for buckets of the
    future: with ``bidirectional=False`` all of them serve the past.

    Parameters
    ----------
    n_heads : int
        Number of heads.
    rng : numpy.random.Generator
        Draws the table.
    bidirectional, num_buckets, max_distance
        As in `posenc.bias.t5_buckets`.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong kind or value.

    Examples
    --------
    >>> t5 = T5(3, rng=np.random.default_rng(0))
    >>> t5.bias(np.ones((2, 3, 5, 4)), key_length=7).shape
    (3, 5, 7)
    """

    def __init__(
        self,
        n_heads: int,
        *,
        rng: np.random.Generator,
        bidirectional: bool = True,
        num_buckets: int = 32,
        max_distance: int = 128,
    ):
        n_heads = arguments.integer("n_heads", n_heads, minimum=1)
        num_buckets = arguments.integer("num_buckets", num_buckets, minimum=2)
        self.bidirectional = bidirectional
        self.max_distance = max_distance
        self.table: Array = arguments.generator("rng", rng).normal(0, 0.02, (num_buckets, n_heads))
        self._bias(1, 1)  # refuses options that do not fit together

    def _bias(self, query_length: int, key_length: int) -> Array:
        return t5_bias(
            self.table,
            query_length,
            key_length,
            bidirectional=self.bidirectional,
            max_distance=self.max_distance,
        )

    def bias(self, query: Array, key_length: int) -> Array:
        """Return a number for each head, query and key: (H, Q, K)."""
        return self._bias(query.shape[-2], key_length)

    def bias_backward(self, query: Array, grad_scores: Array) -> tuple[None, Gradients]:
        """Add up the gradient of each bucket; the query has no part in this bias."""
        table = t5_bias_gradient(
            grad_scores,
            len(self.table),
            bidirectional=self.bidirectional,
            max_distance=self.max_distance,
        )
        return None, {"table": table}


class ALiBi(Injection):
    """A fixed penalty for distance, steeper in some heads (Press et al. 2022, section 3).

    The symmetric form ``−slope · |distance|``; a causal model's mask hides the future half of it.
    Without that mask it cannot tell a text from its mirror image.

    Parameters
    ----------
    n_heads : int
        Number of heads.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong kind or value.

    Examples
    --------
    >>> ALiBi(4).bias(np.ones((2, 4, 1, 4)), key_length=3)[0]
    array([[-0.5 , -0.25,  0.  ]])
    """

    def __init__(self, n_heads: int):
        self.n_heads = arguments.integer("n_heads", n_heads, minimum=1)

    def bias(self, query: Array, key_length: int) -> Array:
        """Return the penalties: (H, Q, K)."""
        return alibi_bias(self.n_heads, query.shape[-2], key_length, causal=False)


class Shaw(Injection):
    """A learned vector for each distance, compared with the query (Shaw et al. 2018, eq. 4).

    Distances are clipped to `max_distance`. All heads and layers share the vectors, from
    N(0, 1/head_dim), and there are none for the values, whose benefit the authors' ablation does
    not show (their Table 3).

    Parameters
    ----------
    head_dim : int
        Width of a head.
    rng : numpy.random.Generator
        Draws the table.
    max_distance : int, default 16
        Largest distance that is told from larger ones.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong kind or value.

    Examples
    --------
    >>> shaw = Shaw(4, rng=np.random.default_rng(0))
    >>> shaw.bias(np.ones((2, 3, 5, 4)), key_length=7).shape
    (2, 3, 5, 7)
    """

    def __init__(self, head_dim: int, *, rng: np.random.Generator, max_distance: int = 16):
        head_dim = arguments.integer("head_dim", head_dim, minimum=1)
        self.max_distance = arguments.integer("max_distance", max_distance, minimum=0)
        shape = (2 * self.max_distance + 1, head_dim)
        rng = arguments.generator("rng", rng)
        self.table: Array = rng.standard_normal(shape) / math.sqrt(head_dim)

    def bias(self, query: Array, key_length: int) -> Array:
        """Return query · vector of the distance, scaled like the scores: (B, H, Q, K)."""
        scores = relative_key_scores(query, self.table, key_length)
        return scores / math.sqrt(query.shape[-1])

    def bias_backward(self, query: Array, grad_scores: Array) -> tuple[Array, Gradients]:
        """Send the gradient to the query and to the vectors."""
        grad = grad_scores / math.sqrt(query.shape[-1])
        table = relative_table_gradient(grad, query, self.max_distance)
        return relative_value_output(grad, self.table), {"table": table}


ENCODINGS = ("none", "sinusoidal", "learned", "rotary", "t5", "alibi", "shaw")


def encoding_named(
    name: str,
    d_model: int,
    n_heads: int,
    *,
    rng: np.random.Generator,
    causal: bool = False,
    max_length: int = 512,
) -> Injection:
    """Return the encoding of that name, fit for a model of these sizes.

    Parameters
    ----------
    name : {"none", "sinusoidal", "learned", "rotary", "t5", "alibi", "shaw"}
    d_model, n_heads : int
        Width and number of heads of the model.
    rng : numpy.random.Generator
        Draws the table of an encoding that learns one.
    causal : bool, default False
        Whether keys after the query are never seen; T5 then spends no buckets on them.
    max_length : int, default 512
        Number of rows of a learned table.

    Returns
    -------
    Injection

    Raises
    ------
    TypeError, ValueError
        If the name is not one of these, or a size does not fit the encoding.

    Examples
    --------
    >>> type(encoding_named("rotary", 12, 3, rng=np.random.default_rng(0))).__name__
    'Rotary'
    """
    match arguments.one_of("encoding", name, ENCODINGS):
        case "sinusoidal":
            return Sinusoidal(d_model)
        case "learned":
            return Learned(max_length, d_model, rng=rng)
        case "rotary":
            if d_model // n_heads % 2:
                raise ValueError(
                    f"d_model / n_heads must be even for the rotary encoding, which turns pairs, "
                    f"got {d_model} / {n_heads}"
                )
            return Rotary()
        case "t5":
            return T5(n_heads, rng=rng, bidirectional=not causal)
        case "alibi":
            return ALiBi(n_heads)
        case "shaw":
            return Shaw(d_model // n_heads, rng=rng)
    return Injection()
