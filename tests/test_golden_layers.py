"""Attention and layers against arrays that PyTorch computed in float64, forward and gradients.

tests/golden/README.md says who made which array. What PyTorch writes differently is mapped here:

- its linear weights are (out, in) and applied as `x @ W.T + b`; ours are (in, out);
- `in_proj_weight` (3·d_model, d_model) is W_q, W_k and W_v on top of each other, so is the bias;
- `norm1`, `norm2`, `norm3` are the norms of the sub-layers in order, `linear1` and `linear2` the
  feed-forward maps; `norm_first` is our ``norm="pre"``;
- `key_padding_mask` has True = ignore, our masks have True = may attend;
- `is_causal` with fewer queries than keys is aligned at the top left, ours at the bottom right.

Both sides compute in float64 and differ in the order of their sums only.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from posenc.attention import MultiHeadAttention, scaled_dot_product_attention
from posenc.injection import Injection
from posenc.masks import causal_mask, combine
from posenc.transformer import DecoderLayer, EncoderLayer

GOLDEN = Path(__file__).parent / "golden"
N_HEADS, D_MODEL, D_FF = 3, 12, 20
NAMES = {
    "multihead_attn": "cross_attention",
    "self_attn": "self_attention",
    "out_proj": "output",
    "linear1": "feed_forward.first",
    "linear2": "feed_forward.second",
}
ENCODER_NORMS = {"norm1": "self_attention_norm", "norm2": "feed_forward_norm"}
DECODER_NORMS = {
    "norm1": "self_attention_norm",
    "norm2": "cross_attention_norm",
    "norm3": "feed_forward_norm",
}


@cache
def golden(name):
    with np.load(GOLDEN / f"{name}.npz") as arrays:
        return dict(arrays)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-13)


def ours(torch_arrays, norms):
    """Return PyTorch's weights, or their gradients, under our names and in our layout."""
    arrays = {}
    for name, array in torch_arrays.items():
        *path, last = name.replace("in_proj_", "in_proj.").split(".")
        path = [norms.get(part, NAMES.get(part, part)) for part in path]
        if last == "weight" and array.ndim == 2:
            array = array.T  # (out, in) to (in, out)
        if path[-1].endswith("_norm"):
            last = {"weight": "scale", "bias": "shift"}[last]
        if path[-1] == "in_proj":
            parts = np.split(array, 3, axis=-1)
            for part, block in zip(("query", "key", "value"), parts, strict=True):
                arrays[".".join([*path[:-1], part, last])] = block
        else:
            arrays[".".join([*path, last])] = array
    return arrays


def starting_with(prefix, arrays):
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def loaded(layer, arrays):
    parameters = layer.parameters()
    assert parameters.keys() == arrays.keys()
    for name, array in arrays.items():
        assert parameters[name].shape == array.shape
        parameters[name][...] = array
    return layer


# --- attention.npz: scaled dot products -----------------------------------------------------------


def test_attention_without_and_with_masks():
    a = golden("attention")
    q, k, v = a["q"], a["k"], a["v"]
    causal, padding = causal_mask(5), a["pad_keep"][:, None, None, :]
    masks = {
        "sdpa_plain": None,
        "sdpa_causal": causal,
        "sdpa_padding": padding,
        "sdpa_causal_padding": combine(causal, padding),
    }
    for name, mask in masks.items():
        close(scaled_dot_product_attention(q, k, v, mask=mask)[0], a[name])


def test_attention_with_a_bias_and_with_another_scale():
    a = golden("attention")
    close(scaled_dot_product_attention(a["q"], a["k"], a["v"], bias=a["bias"])[0], a["sdpa_bias"])
    close(scaled_dot_product_attention(a["q"], a["k"], a["v"], scale=1)[0], a["sdpa_scale1"])


def test_a_query_that_sees_no_key_gets_zeros():
    a = golden("attention")
    output, _ = scaled_dot_product_attention(a["q"], a["k"], a["v"], mask=a["dead_mask"])
    alive = a["dead_mask"].any(axis=-1)
    assert not alive[2]
    close(output[:, :, alive], a["sdpa_fully_masked_row"][:, :, alive])
    assert (output[:, :, 2] == 0).all()


def test_fewer_queries_than_keys():
    a = golden("attention")
    q, k, v = a["q2"], a["k"], a["v"]
    bottom_right, _ = scaled_dot_product_attention(q, k, v, mask=causal_mask(2, 5))
    close(bottom_right, a["sdpa_causal_Lq2_Lk5_bottomright"])
    top_left, _ = scaled_dot_product_attention(q, k, v, mask=np.tri(2, 5, dtype=bool))
    close(top_left, a["sdpa_causal_Lq2_Lk5_topleft"])


def multi_head_attention():
    weights = starting_with("mha_", golden("attention"))
    named = {n: a for n, a in weights.items() if n.startswith(("in_proj", "out_proj"))}
    attention = MultiHeadAttention(D_MODEL, N_HEADS, rng=np.random.default_rng(0))
    return loaded(attention, ours(named, {}))


@pytest.mark.parametrize("mode", ["self", "self_pad", "self_causal", "cross"])
def test_multi_head_attention(mode):
    a = golden("attention")
    memory = a["mha_mem"] if mode == "cross" else None
    keep = ~a["mha_key_padding_mask"]
    mask = {"self_pad": keep[:, None, None, :], "self_causal": causal_mask(5)}.get(mode)
    output, weights = multi_head_attention()(a["mha_x"], memory, mask=mask)
    close(output, a[f"mha_{mode}_out"])
    close(weights, a[f"mha_{mode}_weights"])


# --- layers.npz: encoder and decoder layers -------------------------------------------------------

ENCODER_LAYERS = [(norm, act) for norm in ("post", "pre") for act in ("relu", "gelu")]


def encoder_layer(norm, activation):
    layer = EncoderLayer(
        D_MODEL, N_HEADS, D_FF, rng=np.random.default_rng(0), norm=norm, activation=activation
    )
    weights = starting_with(f"enc_{norm}_{activation}__", golden("layers"))
    weights = {n: a for n, a in weights.items() if not n.startswith("grad__")}
    return loaded(layer, ours(weights, ENCODER_NORMS))


@pytest.mark.parametrize(("norm", "activation"), ENCODER_LAYERS)
def test_encoder_layer(norm, activation):
    a, name = golden("layers"), f"enc_{norm}_{activation}"
    layer = encoder_layer(norm, activation)
    close(layer(a["x"]), a[f"{name}_out"])
    close(layer(a["x"], mask=causal_mask(5)), a[f"{name}_causal_out"])
    padding = ~a["key_padding_mask"][:, None, None, :]
    # PyTorch's fast path may leave anything in the rows of padding tokens: nobody reads them.
    real = ~a["key_padding_mask"]
    close(layer(a["x"], mask=padding)[real], a[f"{name}_pad_out"][real])


@pytest.mark.parametrize(("norm", "activation"), ENCODER_LAYERS)
def test_causal_encoder_layer(norm, activation):
    a = golden("layers")
    layer = encoder_layer(norm, activation)
    layer.self_attention.causal = True
    close(layer(a["x"]), a[f"enc_{norm}_{activation}_causal_out"])


@pytest.mark.parametrize(("norm", "activation"), ENCODER_LAYERS)
def test_encoder_layer_gradients(norm, activation):
    a, name = golden("layers"), f"enc_{norm}_{activation}"
    layer = encoder_layer(norm, activation)
    context = {"mask": None, "positions": np.arange(5), "encoding": Injection(), "cache": None}
    _, tape = layer.forward(a["x"], **context)
    grad_x, of_encoding, gradients = layer.backward(tape, a["gy"])
    close(grad_x, a[f"{name}_grad_x"])
    assert of_encoding == {}
    expected = ours(starting_with(f"{name}__grad__", a), ENCODER_NORMS)
    assert gradients.keys() == expected.keys()
    for parameter, gradient in expected.items():
        close(gradients[parameter], gradient)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_decoder_layer(norm):
    a = golden("layers")
    layer = DecoderLayer(D_MODEL, N_HEADS, D_FF, rng=np.random.default_rng(0), norm=norm)
    loaded(layer, ours(starting_with(f"dec_{norm}__", a), DECODER_NORMS))
    close(layer(a["x"], a["mem"]), a[f"dec_{norm}_out"])


def test_every_golden_array_is_used():
    """A new array in the files must get a test: here are the names that the tests above read."""
    attention = {"q", "k", "v", "q2", "bias", "pad_keep", "dead_mask"}
    rest = golden("attention").keys() - attention
    assert all(name.startswith(("sdpa_", "mha_")) for name in rest)
    assert len(rest) == 24
    layers = golden("layers").keys() - {"x", "mem", "gy", "key_padding_mask"}
    known = (*(f"enc_{norm}_{act}_" for norm, act in ENCODER_LAYERS), "dec_post_", "dec_pre_")
    assert all(name.startswith(known) for name in layers)
