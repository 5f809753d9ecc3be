"""The two stacks of a Transformer: the encoder, and the decoder that also reads an encoder.

One argument, `encoding`, chooses how a stack knows about order, and one more, `where`, at which
layers: `posenc.injection` explains both. Embeddings are multiplied by √d_model, as in section 3.4
of Vaswani et al. (2017).

Shapes: B batch, L length, S source length, H heads, Q queries, K keys, D `d_model`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _arguments as arguments
from posenc._context import Context, KeyValueCache, checked_mask, checked_sequences
from posenc.blocks import DecoderLayer, EncoderLayer, LayerTape
from posenc.injection import Injection, encoding_named
from posenc.layers import Array, Embedding, Gradients, Layer, LayerNorm, under
from posenc.positions import add_positions


class StackTape(NamedTuple):
    """What a stack remembers: its input, one tape for each layer, and that of the last norm."""

    tokens: NDArray[np.int64]
    positions: NDArray
    layers: list[LayerTape]
    last_norm: Any

    def maps(self, sublayer: str) -> list[Array]:
        """Return the attention weights (B, H, Q, K) of that sub-layer in every layer."""
        return [layer[sublayer].sublayer.attend.weights for layer in self.layers]


class Stack(Layer):
    """What encoder and decoder share: embedding, positions, layers, and a norm at the end."""

    layer_type: type[EncoderLayer] | type[DecoderLayer]
    usually_causal: bool

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        n_layers: int,
        *,
        rng: np.random.Generator,
        encoding: str | Injection = "sinusoidal",
        where: str | int | None = None,
        causal: bool | None = None,
        norm: str = "pre",
        activation: str = "relu",
        max_length: int = 512,
    ):
        causal = self.usually_causal if causal is None else arguments.boolean("causal", causal)
        if not isinstance(encoding, str | Injection):
            raise TypeError(f"encoding must be a string or an Injection, got {encoding!r}")
        n_layers = arguments.integer("n_layers", n_layers, minimum=1)
        self.embedding = Embedding(vocab_size, d_model, rng=rng)
        self.layers = [
            self.layer_type(
                d_model, n_heads, d_ff, rng=rng, causal=causal, norm=norm, activation=activation
            )
            for _ in range(n_layers)
        ]
        self.last_norm = LayerNorm(d_model) if norm == "pre" else None
        if isinstance(encoding, str):
            encoding = encoding_named(
                encoding, d_model, n_heads, rng=rng, causal=causal, max_length=max_length
            )
        self.encoding = encoding
        self.reached = encoding.layers_reached(where, n_layers)

    def new_cache(self) -> list[KeyValueCache]:
        """Return an empty cache, one `KeyValueCache` for each layer."""
        return [KeyValueCache() for _ in self.layers]

    def forward(
        self,
        tokens: NDArray[np.int64],
        *memory: Array,
        mask: NDArray[np.bool_] | None = None,
        positions: NDArray | None = None,
        cache: Sequence[KeyValueCache] | None = None,
        **options: Any,
    ) -> tuple[Array, StackTape]:
        """Return the vectors (B, L, D) of `tokens` (B, L), and the tape."""
        if positions is None:
            positions = np.arange(tokens.shape[1])
        x, _ = self.embedding.forward(tokens)
        tapes = []
        for index, layer in enumerate(self.layers):
            encoding = self.encoding if index in self.reached else Injection()
            if (added := encoding.embed(positions)) is not None:
                x = add_positions(x, added)
            options |= {"encoding": encoding, "cache": cache and cache[index]}
            x, tape = layer.forward(x, *memory, mask=mask, positions=positions, **options)
            tapes.append(tape)
        norm_tape = None
        if self.last_norm is not None:
            x, norm_tape = self.last_norm.forward(x)
        return x, StackTape(tokens, positions, tapes, norm_tape)

    def backward(self, tape: StackTape, grad: Array) -> tuple[Any, Gradients]:
        """Return the gradient of `memory` (0 without one) and those of the parameters."""
        grad_memory: Any = 0
        gradients: Gradients = {}
        of_encoding: list[Gradients] = []  # one table may act in several layers
        if self.last_norm is not None:
            grad, of_norm = self.last_norm.backward(tape.last_norm, grad)
            gradients |= under("last_norm", of_norm)
        for index in reversed(range(len(self.layers))):
            grad, *others, inside, of_layer = self.layers[index].backward(tape.layers[index], grad)
            grad_memory = sum(others, grad_memory)
            gradients |= under(f"layers.{index}", of_layer)
            of_encoding.append(inside)
            if index in self.reached:
                of_encoding.append(self.encoding.embed_backward(tape.positions, grad))
        gradients |= under("embedding", self.embedding.backward(tape.tokens, grad))
        for part in of_encoding:
            for name, array in under("encoding", part).items():
                gradients[name] = gradients.get(name, 0) + array
        return grad_memory, gradients

    def checked(
        self,
        tokens: ArrayLike,
        mask: ArrayLike | None,
        positions: ArrayLike | None,
        cache: Sequence[KeyValueCache] | None,
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Return the tokens and the keyword arguments of `forward`, all checked."""
        ids = self.embedding.checked(tokens)
        if cache is not None and len(cache) != len(self.layers):
            raise ValueError(
                f"cache must have one entry for each of {len(self.layers)} layers, as new_cache() "
                f"makes it, got {len(cache)}"
            )
        scores = (len(ids), self.layers[0].self_attention.n_heads, ids.shape[1])
        context = Context.checked(scores, mask, positions, cache[0] if cache else None)
        return ids, context._asdict() | {"cache": cache}


class Encoder(Stack):
    """Tokens in, one vector for each token out.

    Parameters
    ----------
    vocab_size, d_model, n_heads, d_ff, n_layers : int
        Number of tokens, width, heads, inner width of the feed-forward networks, layers.
    rng : numpy.random.Generator
        Draws the weights.
    encoding : str or Injection, default "sinusoidal"
        How the model knows about order: ``"none"``, ``"sinusoidal"``, ``"learned"``, ``"rotary"``,
        ``"t5"``, ``"alibi"``, ``"shaw"``, or an object from `posenc.injection`.
    where : {"input", "every"} or int, optional
        At which layers it acts: see `posenc.injection.Injection.layers_reached`. A number is late:
        that many layers run first without it.
    causal : bool, default False
        Whether each position sees itself and the past only, as in a GPT.
    norm : {"pre", "post"}, default "pre"
        Whether the norms stand before the sub-layers (and once more at the end) or after each sum.
    activation : {"relu", "gelu"}, default "relu"
        Of the feed-forward networks.
    max_length : int, default 512
        Number of rows of a learned encoding.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong kind or value.

    Examples
    --------
    >>> encoder = Encoder(11, 12, 3, 20, 2, rng=np.random.default_rng(0), encoding="rotary")
    >>> encoder([[3, 1, 4, 1, 5]]).shape
    (1, 5, 12)

    A causal one can read in parts, if it keeps what it has computed:

    >>> gpt = Encoder(11, 12, 3, 20, 2, rng=np.random.default_rng(0), causal=True)
    >>> cache = gpt.new_cache()
    >>> parts = [gpt([[3, 1, 4]], cache=cache), gpt([[1, 5]], cache=cache)]
    >>> bool(np.allclose(np.concatenate(parts, axis=1), gpt([[3, 1, 4, 1, 5]])))
    True
    """

    layer_type = EncoderLayer
    usually_causal = False

    def __call__(
        self,
        tokens: ArrayLike,
        *,
        mask: ArrayLike | None = None,
        positions: ArrayLike | None = None,
        cache: Sequence[KeyValueCache] | None = None,
    ) -> Array:
        """Encode a batch of token sequences.

        Parameters
        ----------
        tokens : array_like of int, shape (B, L)
        mask : array_like of bool, optional
            ``True`` = may attend; axes (query, key) or (batch, heads, query, key). Write a padding
            mask (B, L) as ``mask[:, None, None, :]``. A causal model adds its own.
        positions : array_like, shape (L,) or (B, L), optional
            Position of each token, for padding or packing: see `posenc.positions.position_ids`.
            Without it they count on from the cached ones. T5, ALiBi and Shaw do not read them.
        cache : list of KeyValueCache, optional
            From `new_cache()`; it is extended, and `mask` then covers the cached keys too.

        Returns
        -------
        ndarray, shape (B, L, D)

        Raises
        ------
        TypeError, ValueError, IndexError
            If an argument has the wrong kind, the wrong shape, or holds a token or position
            without a row in its table.
        """
        ids, context = self.checked(tokens, mask, positions, cache)
        return self.forward(ids, **context)[0]

    def attention_maps(
        self,
        tokens: ArrayLike,
        *,
        mask: ArrayLike | None = None,
        positions: ArrayLike | None = None,
    ) -> list[Array]:
        """Return the attention weights of every layer, each (B, H, L, L)."""
        ids, context = self.checked(tokens, mask, positions, None)
        return self.forward(ids, **context)[1].maps("self_attention")


class Decoder(Stack):
    """Tokens and the output of an encoder in, one vector for each token out.

    Parameters
    ----------
    vocab_size, d_model, n_heads, d_ff, n_layers, rng, encoding, where, norm, activation, max_length
        As in `Encoder`. The encoding acts in the self-attention, or at the input.
    causal : bool, default True
        Whether the self-attention sees the past only.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong kind or value.

    Examples
    --------
    >>> decoder = Decoder(11, 12, 3, 20, 2, rng=np.random.default_rng(0))
    >>> decoder([[3, 1, 4, 1, 5]], np.ones((1, 7, 12))).shape
    (1, 5, 12)
    """

    layer_type = DecoderLayer
    usually_causal = True

    def __call__(
        self,
        tokens: ArrayLike,
        memory: ArrayLike,
        *,
        mask: ArrayLike | None = None,
        memory_mask: ArrayLike | None = None,
        positions: ArrayLike | None = None,
        cache: Sequence[KeyValueCache] | None = None,
    ) -> Array:
        """Decode a batch of token sequences.

        Parameters
        ----------
        tokens : array_like of int, shape (B, L)
        memory : array_like, shape (B, S, D)
            Output of the encoder.
        memory_mask : array_like of bool, optional
            ``True`` = may attend, over (B, H, L, S): which source positions may be read.
        mask, positions, cache
            As in `Encoder`, for the self-attention. The keys of `memory` are projected anew in
            every call; a production system would cache those too.

        Returns
        -------
        ndarray, shape (B, L, D)

        Raises
        ------
        TypeError, ValueError, IndexError
            As in `Encoder`.
        """
        ids, memory, context = self.checked_pair(
            tokens, memory, mask, memory_mask, positions, cache
        )
        return self.forward(ids, memory, **context)[0]

    def attention_maps(
        self,
        tokens: ArrayLike,
        memory: ArrayLike,
        *,
        mask: ArrayLike | None = None,
        memory_mask: ArrayLike | None = None,
        positions: ArrayLike | None = None,
    ) -> tuple[list[Array], list[Array]]:
        """Return the weights of self-attention (B, H, L, L) and cross-attention (B, H, L, S)."""
        ids, memory, context = self.checked_pair(tokens, memory, mask, memory_mask, positions, None)
        _, tape = self.forward(ids, memory, **context)
        return tape.maps("self_attention"), tape.maps("cross_attention")

    def checked_pair(
        self,
        tokens: ArrayLike,
        memory: ArrayLike,
        mask: ArrayLike | None,
        memory_mask: ArrayLike | None,
        positions: ArrayLike | None,
        cache: Sequence[KeyValueCache] | None,
    ) -> tuple[NDArray[np.int64], Array, dict[str, Any]]:
        """Return tokens, memory and the keyword arguments of `forward`, all checked."""
        ids, context = self.checked(tokens, mask, positions, cache)
        memory = checked_sequences("memory", memory, self.embedding.table.shape[1], rows=len(ids))
        heads = self.layers[0].self_attention.n_heads
        over_memory = (*ids.shape[:1], heads, ids.shape[1], memory.shape[1])
        context["memory_mask"] = checked_mask("memory_mask", memory_mask, over_memory)
        return ids, memory, context
