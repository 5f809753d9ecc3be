"""The blocks of a Transformer: attention that knows where it stands, and the two kinds of layer.

`posenc.stacks` puts them on top of each other. Everything follows Vaswani et al. (2017), section 3,
except that the norm may also stand before the sub-layer (`norm="pre"`, Xiong et al. 2020), which is
easier to train.

Each class has `forward` and `backward` side by side, in the form that `posenc.layers` explains.
Shapes: B batch, L length, S source length, Q queries, K keys, H heads, D `d_model`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _arguments as arguments
from posenc._context import Context, KeyValueCache, checked_mask, checked_sequences
from posenc.attention import AttentionTape, MultiHeadAttention
from posenc.injection import Injection
from posenc.layers import Array, FeedForward, Gradients, Layer, LayerNorm, under
from posenc.masks import causal_mask, combine


class SelfAttentionTape(NamedTuple):
    """What `SelfAttention.forward` remembers."""

    project: Any
    attend: AttentionTape
    encoding: Injection
    positions: NDArray


class SelfAttention(MultiHeadAttention):
    """Multi-head attention of a sequence to itself: the place where positions meet scores."""

    def __init__(self, d_model: int, n_heads: int, *, rng: np.random.Generator, causal: bool):
        super().__init__(d_model, n_heads, rng=rng)
        self.causal = arguments.boolean("causal", causal)

    def forward(
        self,
        x: Array,
        *,
        positions: NDArray,
        encoding: Injection,
        mask: NDArray[np.bool_] | None,
        cache: KeyValueCache | None,
    ) -> tuple[Array, SelfAttentionTape]:
        """Attend from every row of `x` (B, Q, D) to all of them, and to the cached ones."""
        (query, key, value), project_tape = self.project(x, x, x)  # (B, H, Q, head_dim)
        query, key = encoding.turn(query, positions), encoding.turn(key, positions)
        if cache is not None:
            key, value = cache.extend(key, value)  # (B, H, K, head_dim)
        if self.causal:
            past = causal_mask(query.shape[-2], key.shape[-2])
            mask = past if mask is None else combine(past, mask)
        bias = encoding.bias(query, key.shape[-2])
        y, attend_tape = self.attend(query, key, value, mask=mask, bias=bias)
        return y, SelfAttentionTape(project_tape, attend_tape, encoding, positions)

    def backward(self, tape: SelfAttentionTape, grad: Array) -> tuple[Array, Gradients, Gradients]:
        """Return the gradients of `x`, of the encoding's parameters and of this layer's."""
        encoding, positions = tape.encoding, tape.positions
        (grad_query, grad_key, grad_value, grad_scores), after = self.attend_backward(
            tape.attend, grad
        )
        by_bias, of_encoding = encoding.bias_backward(tape.attend.query, grad_scores)
        if by_bias is not None:
            grad_query = grad_query + by_bias
        grad_query, grad_key = (encoding.turn(g, -positions) for g in (grad_query, grad_key))
        grads, before = self.project_backward(tape.project, [grad_query, grad_key, grad_value])
        return grads[0] + grads[1] + grads[2], of_encoding, before | after


class CrossAttentionTape(NamedTuple):
    """What `CrossAttention.forward` remembers."""

    project: Any
    attend: AttentionTape


class CrossAttention(MultiHeadAttention):
    """Multi-head attention from a sequence to the output of the encoder.

    The two sequences are numbered apart, so no relative encoding applies here, as in T5.
    """

    def forward(
        self, x: Array, memory: Array, *, mask: NDArray[np.bool_] | None
    ) -> tuple[Array, CrossAttentionTape]:
        """Attend from `x` (B, Q, D) to `memory` (B, S, D)."""
        heads, project_tape = self.project(x, memory, memory)
        y, attend_tape = self.attend(*heads, mask=mask)
        return y, CrossAttentionTape(project_tape, attend_tape)

    def backward(self, tape: CrossAttentionTape, grad: Array) -> tuple[Array, Array, Gradients]:
        """Return the gradients of `x`, of `memory` and of the parameters."""
        (*grad_heads, _), after = self.attend_backward(tape.attend, grad)
        grads, before = self.project_backward(tape.project, grad_heads)
        return grads[0], grads[1] + grads[2], before | after


class ResidualTape(NamedTuple):
    """What `ResidualLayer.around` remembers: the tapes of the sub-layer and of its norm."""

    sublayer: Any
    norm: Any


LayerTape = dict[str, ResidualTape]  # by the name of the sub-layer


class ResidualLayer(Layer):
    """A layer made of sub-layers, each with a residual connection and a norm.

    ``norm="post"``: y = norm(x + sublayer(x)). ``norm="pre"``: y = x + sublayer(norm(x)), where x
    itself is never normalised, and a stack needs one more norm at its end.
    The norm of the sub-layer ``name`` is called ``name_norm``.
    """

    norm: str

    def around(self, name: str, x: Array, *others: Array, **options: Any) -> tuple[Array, Any]:
        """Run one sub-layer with its norm and residual connection."""
        sublayer, norm = getattr(self, name), getattr(self, f"{name}_norm")
        if self.norm == "pre":
            normed, norm_tape = norm.forward(x)
            y, tape = sublayer.forward(normed, *others, **options)
            return x + y, ResidualTape(tape, norm_tape)
        y, tape = sublayer.forward(x, *others, **options)
        y, norm_tape = norm.forward(x + y)
        return y, ResidualTape(tape, norm_tape)

    def around_backward(self, name: str, tape: LayerTape, grad: Array) -> Any:
        """Return the gradients of `x`, of anything else the sub-layer read, of the parameters."""
        sublayer, norm = getattr(self, name), getattr(self, f"{name}_norm")
        sublayer_tape, norm_tape = tape[name]
        if self.norm == "post":
            grad, of_norm = norm.backward(norm_tape, grad)
        grad_x, *others, of_sublayer = sublayer.backward(sublayer_tape, grad)
        if self.norm == "pre":
            grad_x, of_norm = norm.backward(norm_tape, grad_x)
        gradients = under(name, of_sublayer) | under(f"{name}_norm", of_norm)
        return grad + grad_x, *others, gradients  # the skip path passes grad on unchanged


class EncoderLayer(ResidualLayer):
    """Self-attention, then a feed-forward network, each with a residual connection and a norm.

    Parameters
    ----------
    d_model, n_heads, d_ff : int
        Width, number of heads (must divide the width), inner width of the feed-forward network.
    rng : numpy.random.Generator
        Draws the weights.
    causal : bool, default False
        Whether a position sees itself and the past only; then this is a layer of a GPT.
    norm : {"pre", "post"}, default "pre"
        Whether the norm stands before the sub-layer or after the addition.
    activation : {"relu", "gelu"}, default "relu"
        Of the feed-forward network.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong kind or value.

    Notes
    -----
    Vaswani et al. (2017), section 3.1.

    Examples
    --------
    >>> layer = EncoderLayer(12, 3, 20, rng=np.random.default_rng(0))
    >>> layer(np.ones((2, 5, 12))).shape
    (2, 5, 12)
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        rng: np.random.Generator,
        causal: bool = False,
        norm: str = "pre",
        activation: str = "relu",
    ):
        self.norm = arguments.one_of("norm", norm, ["pre", "post"])
        self.self_attention = SelfAttention(d_model, n_heads, rng=rng, causal=causal)
        self.self_attention_norm = LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff, rng=rng, activation=activation)
        self.feed_forward_norm = LayerNorm(d_model)

    def __call__(
        self,
        x: ArrayLike,
        *,
        mask: ArrayLike | None = None,
        positions: ArrayLike | None = None,
        encoding: Injection | None = None,
        cache: KeyValueCache | None = None,
    ) -> Array:
        """Return the layer's output for `x` of shape (B, L, D), in the dtype of `x`.

        `mask`, `positions` and `cache` are those of `Encoder`; `encoding` acts inside the
        attention, and there is none when it is not given.
        """
        x = checked_sequences("x", x, len(self.feed_forward_norm.scale))
        scores = (len(x), self.self_attention.n_heads, x.shape[1])
        context = Context.checked(scores, mask, positions, cache)
        y, _ = self.forward(x, encoding=encoding or Injection(), **context._asdict())
        return y.astype(x.dtype, copy=False)

    def forward(self, x: Array, **context: Any) -> tuple[Array, LayerTape]:
        """Return the output and the tapes of the two sub-layers."""
        tape: LayerTape = {}
        x, tape["self_attention"] = self.around("self_attention", x, **context)
        x, tape["feed_forward"] = self.around("feed_forward", x)
        return x, tape

    def backward(self, tape: LayerTape, grad: Array) -> tuple[Array, Gradients, Gradients]:
        """Return the gradients of `x`, of the encoding's parameters and of the layer's."""
        grad, last = self.around_backward("feed_forward", tape, grad)
        grad, of_encoding, first = self.around_backward("self_attention", tape, grad)
        return grad, of_encoding, first | last


class DecoderLayer(ResidualLayer):
    """Causal self-attention, attention to the encoder's output, then a feed-forward network.

    Parameters
    ----------
    d_model, n_heads, d_ff, rng, norm, activation
        As in `EncoderLayer`.
    causal : bool, default True
        Whether the self-attention sees the past only.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong kind or value.

    Notes
    -----
    Vaswani et al. (2017), section 3.1.

    Examples
    --------
    >>> layer = DecoderLayer(12, 3, 20, rng=np.random.default_rng(0))
    >>> layer(np.ones((2, 5, 12)), np.ones((2, 7, 12))).shape
    (2, 5, 12)
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        rng: np.random.Generator,
        causal: bool = True,
        norm: str = "pre",
        activation: str = "relu",
    ):
        self.norm = arguments.one_of("norm", norm, ["pre", "post"])
        self.self_attention = SelfAttention(d_model, n_heads, rng=rng, causal=causal)
        self.self_attention_norm = LayerNorm(d_model)
        self.cross_attention = CrossAttention(d_model, n_heads, rng=rng)
        self.cross_attention_norm = LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff, rng=rng, activation=activation)
        self.feed_forward_norm = LayerNorm(d_model)

    def __call__(
        self,
        x: ArrayLike,
        memory: ArrayLike,
        *,
        mask: ArrayLike | None = None,
        memory_mask: ArrayLike | None = None,
        positions: ArrayLike | None = None,
        encoding: Injection | None = None,
        cache: KeyValueCache | None = None,
    ) -> Array:
        """Return the output for `x` (B, L, D) and the encoder's output `memory` (B, S, D).

        `memory_mask` says which positions of `memory` may be attended to, axes (L, S) or
        (B, H, L, S); the other arguments are as in `EncoderLayer`.
        """
        width = len(self.feed_forward_norm.scale)
        x = checked_sequences("x", x, width)
        memory = checked_sequences("memory", memory, width, rows=len(x))
        scores = (len(x), self.self_attention.n_heads, x.shape[1])
        context = Context.checked(scores, mask, positions, cache)._asdict()
        context["memory_mask"] = checked_mask(
            "memory_mask", memory_mask, (*scores, memory.shape[1])
        )
        y, _ = self.forward(x, memory, encoding=encoding or Injection(), **context)
        return y.astype(x.dtype, copy=False)

    def forward(
        self, x: Array, memory: Array, *, memory_mask: NDArray[np.bool_] | None, **context: Any
    ) -> tuple[Array, LayerTape]:
        """Return the output and the tapes of the three sub-layers."""
        tape: LayerTape = {}
        x, tape["self_attention"] = self.around("self_attention", x, **context)
        x, tape["cross_attention"] = self.around("cross_attention", x, memory, mask=memory_mask)
        x, tape["feed_forward"] = self.around("feed_forward", x)
        return x, tape

    def backward(self, tape: LayerTape, grad: Array) -> tuple[Array, Array, Gradients, Gradients]:
        """Return the gradients of `x`, `memory`, the encoding's parameters and the layer's."""
        grad, last = self.around_backward("feed_forward", tape, grad)
        grad, grad_memory, middle = self.around_backward("cross_attention", tape, grad)
        grad, of_encoding, first = self.around_backward("self_attention", tape, grad)
        return grad, grad_memory, of_encoding, first | middle | last
