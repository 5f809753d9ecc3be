"""Positional encoding in NumPy, one concept a module.

`sinusoidal`, `learned`, `positions`, `masks` and `attention` are the course's first half; `rotary`
and `bias` put position into the score; `transformer` stacks it all, and `training` and `tasks` let
it learn. `figures`, `explore`, `quiz` and `checks` belong to the book and are imported by name.
"""

from posenc.attention import MultiHeadAttention, scaled_dot_product_attention, softmax
from posenc.bias import alibi_bias, alibi_slopes, clipped_relative_positions, t5_bias, t5_buckets
from posenc.learned import LearnedEncoding
from posenc.masks import causal_mask, combine, document_mask, padding_mask
from posenc.positions import (
    add_positions,
    concat_positions,
    packed_position_ids,
    position_ids,
)
from posenc.rotary import (
    DynamicNTKScaling,
    LinearScaling,
    Llama3Scaling,
    NTKScaling,
    YarnScaling,
    apply_rotary,
    rotary_frequencies,
)
from posenc.sinusoidal import frequencies, shift_matrix, sinusoidal_encoding, wavelengths
from posenc.transformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    Transformer,
)

__all__ = [
    "Decoder",
    "DecoderLayer",
    "DynamicNTKScaling",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "LayerNorm",
    "LearnedEncoding",
    "LinearScaling",
    "Llama3Scaling",
    "MultiHeadAttention",
    "NTKScaling",
    "Transformer",
    "YarnScaling",
    "add_positions",
    "alibi_bias",
    "alibi_slopes",
    "apply_rotary",
    "causal_mask",
    "clipped_relative_positions",
    "combine",
    "concat_positions",
    "document_mask",
    "frequencies",
    "packed_position_ids",
    "padding_mask",
    "position_ids",
    "rotary_frequencies",
    "scaled_dot_product_attention",
    "shift_matrix",
    "sinusoidal_encoding",
    "softmax",
    "t5_bias",
    "t5_buckets",
    "wavelengths",
]
