"""The Transformer: encoder, decoder and the whole, with any positional encoding.

Read the parts in this order: `posenc.layers` (linear, norm, feed-forward), `posenc.attention`,
`posenc.injection` (where a position enters), `posenc.blocks` (attention with residual connections),
`posenc.stacks` (encoder and decoder). Here they become models that predict tokens, and the names
of the parts can be imported from here.

Dropout is left out. Vaswani et al. (2017) zero a tenth of the entries of each sum of embedding and
encoding, and of each sub-layer's output, while they train (section 5.4). The small tasks of the
course draw fresh data for every step and do not overfit, and the course wants the same numbers
twice.

Shapes: B batch, L length, S source length, T target length, D `d_model`, V vocabulary.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _arguments as arguments
from posenc._context import KeyValueCache
from posenc.blocks import DecoderLayer, EncoderLayer
from posenc.injection import ENCODINGS
from posenc.layers import Array, FeedForward, Gradients, Layer, LayerNorm, Linear, under
from posenc.positions import position_ids
from posenc.stacks import Decoder, Encoder

__all__ = [
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "KeyValueCache",
    "LayerNorm",
    "Tagger",
    "Transformer",
]


class Tagger(Layer):
    """An encoder that predicts one token for each position; with ``causal=True``, a small GPT.

    Parameters
    ----------
    vocab_size, d_model, n_heads, d_ff, n_layers, rng, **options
        As in `Encoder`.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong kind or value.

    Examples
    --------
    >>> tagger = Tagger(11, 12, 3, 20, 2, rng=np.random.default_rng(0), encoding="none")
    >>> tagger([[3, 1, 4, 1, 5]]).shape
    (1, 5, 11)
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        n_layers: int,
        *,
        rng: np.random.Generator,
        **options: Any,
    ):
        self.encoder = Encoder(vocab_size, d_model, n_heads, d_ff, n_layers, rng=rng, **options)
        self.read_out = Linear(d_model, vocab_size, rng=rng)

    def __call__(self, tokens: ArrayLike, **context: Any) -> Array:
        """Return a score for each position and token, (B, L, V); arguments as in `Encoder`."""
        return self.read_out.forward(self.encoder(tokens, **context))[0]

    def forward(self, tokens: NDArray[np.int64], **context: Any) -> tuple[Array, Any]:
        """Return the scores and the tape."""
        x, encoder_tape = self.encoder.forward(tokens, **context)
        scores, read_out_tape = self.read_out.forward(x)
        return scores, (encoder_tape, read_out_tape)

    def backward(self, tape: Any, grad: Array) -> Gradients:
        """Return the gradients of the parameters."""
        encoder_tape, read_out_tape = tape
        grad, of_read_out = self.read_out.backward(read_out_tape, grad)
        _, of_encoder = self.encoder.backward(encoder_tape, grad)
        return under("encoder", of_encoder) | under("read_out", of_read_out)


class Transformer(Layer):
    """Encoder and decoder: reads one sequence and predicts another, token by token.

    Padding is told by one boolean array for each side, (batch, length) with ``True`` at real
    tokens, as `posenc.masks.padding_mask` makes it: the model hides the padding from every
    attention and counts positions over the real tokens only.

    Parameters
    ----------
    source_vocab_size, target_vocab_size : int
        Numbers of tokens on either side.
    d_model, n_heads, d_ff, n_layers, rng, norm, activation, max_length
        As in `Encoder`, for both stacks.
    encoding : str, default "sinusoidal"
        As in `Encoder`; each stack has its own.
    where : {"input", "every"} or int, optional
        As in `Encoder`, for both stacks.
    causal : bool, default True
        Whether the decoder sees the past only. Without it the model can copy the next token while
        it trains, and has nothing to copy when it generates.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong kind or value.

    Notes
    -----
    Vaswani et al. (2017), figure 1.

    Examples
    --------
    >>> model = Transformer(7, 11, 12, 3, 20, 2, rng=np.random.default_rng(0))
    >>> model([[3, 1, 4]], [[0, 9, 8, 10, 2]]).shape
    (1, 5, 11)
    """

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        n_layers: int,
        *,
        rng: np.random.Generator,
        encoding: str = "sinusoidal",
        causal: bool = True,
        **options: Any,
    ):
        arguments.one_of("encoding", encoding, ENCODINGS)
        sizes = (d_model, n_heads, d_ff, n_layers)
        options |= {"rng": rng, "encoding": encoding}
        self.encoder = Encoder(source_vocab_size, *sizes, causal=False, **options)
        self.decoder = Decoder(target_vocab_size, *sizes, causal=causal, **options)
        self.read_out = Linear(d_model, target_vocab_size, rng=rng)

    def __call__(
        self,
        source: ArrayLike,
        target: ArrayLike,
        *,
        source_mask: ArrayLike | None = None,
        target_mask: ArrayLike | None = None,
        source_positions: ArrayLike | None = None,
        target_positions: ArrayLike | None = None,
    ) -> Array:
        """Return a score for each target position and token.

        Parameters
        ----------
        source : array_like of int, shape (B, S)
        target : array_like of int, shape (B, T)
            What has been written so far: in training the right answer, one place to the right.
        source_mask, target_mask : array_like of bool, (B, S) and (B, T), optional
            ``True`` at real tokens.
        source_positions, target_positions : array_like, optional
            (S,) or (B, S), and (T,) or (B, T): instead of counting the real tokens.

        Returns
        -------
        ndarray, shape (B, T, target_vocab_size)

        Raises
        ------
        TypeError, ValueError, IndexError
            As in `Encoder` and `Decoder`.
        """
        memory = self.encode(source, source_mask=source_mask, positions=source_positions)
        return self.decode(
            target,
            memory,
            source_mask=source_mask,
            target_mask=target_mask,
            positions=target_positions,
        )

    def encode(
        self,
        source: ArrayLike,
        *,
        source_mask: ArrayLike | None = None,
        positions: ArrayLike | None = None,
    ) -> Array:
        """Return the encoder's output (B, S, D), which `decode` calls `memory`."""
        mask, counted = _padding("source_mask", source_mask)
        positions = counted if positions is None else positions
        return self.encoder(source, mask=mask, positions=positions)

    def decode(
        self,
        target: ArrayLike,
        memory: ArrayLike,
        *,
        source_mask: ArrayLike | None = None,
        target_mask: ArrayLike | None = None,
        positions: ArrayLike | None = None,
        cache: Sequence[KeyValueCache] | None = None,
    ) -> Array:
        """Return the scores (B, T, V) of `target`; with a cache, of the tokens that are new.

        `target_mask` covers the cached tokens as well.
        """
        memory_mask, _ = _padding("source_mask", source_mask)
        mask, counted = _padding("target_mask", target_mask)
        if positions is None and counted is not None:
            positions = counted[:, -np.shape(target)[-1] :]
        x = self.decoder(
            target, memory, mask=mask, memory_mask=memory_mask, positions=positions, cache=cache
        )
        return self.read_out.forward(x)[0]

    def generate(
        self,
        source: ArrayLike,
        start: int,
        length: int,
        *,
        source_mask: ArrayLike | None = None,
    ) -> NDArray[np.int64]:
        """Write `length` tokens, each time the likeliest one, with cached keys and values.

        Parameters
        ----------
        source : array_like of int, shape (B, S)
        start : int
            The token that every target begins with.
        length : int
            Number of tokens to write.
        source_mask : array_like of bool, shape (B, S), optional
            ``True`` at real tokens.

        Returns
        -------
        ndarray of int64, shape (B, length)
            Without the start token.
        """
        start = arguments.integer("start", start, minimum=0)
        length = arguments.integer("length", length, minimum=0)
        memory, cache = self.encode(source, source_mask=source_mask), self.decoder.new_cache()
        written = [np.full(len(memory), start)]
        for _ in range(length):
            newest = written[-1][:, np.newaxis]  # (B, 1): the cache knows the rest
            scores = self.decode(newest, memory, source_mask=source_mask, cache=cache)
            written.append(scores[:, -1].argmax(axis=-1))
        return np.stack(written, axis=1)[:, 1:]

    def forward(
        self,
        source: NDArray[np.int64],
        target: NDArray[np.int64],
        *,
        source_mask: NDArray[np.bool_] | None = None,
        target_mask: NDArray[np.bool_] | None = None,
        source_positions: NDArray | None = None,
        target_positions: NDArray | None = None,
    ) -> tuple[Array, Any]:
        """Return the scores and the tape; arguments as in a call."""
        over_source, source_counted = _padding("source_mask", source_mask)
        over_target, target_counted = _padding("target_mask", target_mask)
        memory, encoder_tape = self.encoder.forward(
            source,
            mask=over_source,
            positions=source_counted if source_positions is None else source_positions,
        )
        x, decoder_tape = self.decoder.forward(
            target,
            memory,
            mask=over_target,
            memory_mask=over_source,
            positions=target_counted if target_positions is None else target_positions,
        )
        scores, read_out_tape = self.read_out.forward(x)
        return scores, (encoder_tape, decoder_tape, read_out_tape)

    def backward(self, tape: Any, grad: Array) -> Gradients:
        """Return the gradients of the parameters: from the scores to the target, to the source."""
        encoder_tape, decoder_tape, read_out_tape = tape
        grad, of_read_out = self.read_out.backward(read_out_tape, grad)
        grad_memory, of_decoder = self.decoder.backward(decoder_tape, grad)
        _, of_encoder = self.encoder.backward(encoder_tape, grad_memory)
        return (
            under("encoder", of_encoder)
            | under("decoder", of_decoder)
            | under("read_out", of_read_out)
        )


def _padding(
    name: str, real: ArrayLike | None
) -> tuple[NDArray[np.bool_] | None, NDArray[np.int64] | None]:
    """Return the attention mask (B, 1, 1, L) and the positions (B, L) of padded sequences."""
    if real is None:
        return None, None
    real = arguments.boolean_array(name, real)
    if real.ndim != 2:
        raise ValueError(f"{name} must have shape (batch, length), got {real.shape}")
    return real[:, np.newaxis, np.newaxis, :], position_ids(real)
