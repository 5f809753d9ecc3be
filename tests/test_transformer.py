"""The Transformer: where positions enter, what must not leak, caches, padding, packing, border."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc.injection import (
    ENCODINGS,
    T5,
    ALiBi,
    Injection,
    Learned,
    Rotary,
    Shaw,
    Sinusoidal,
    encoding_named,
)
from posenc.layers import Embedding, Linear
from posenc.masks import causal_mask, combine, document_mask, padding_mask
from posenc.positions import packed_position_ids, position_ids
from posenc.sinusoidal import sinusoidal_encoding
from posenc.transformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    KeyValueCache,
    LayerNorm,
    Tagger,
    Transformer,
)

VOCABULARY, WIDTH, HEADS, FF, LAYERS = 11, 12, 3, 20, 2
WITH_POSITION = [name for name in ENCODINGS if name != "none"]
ABSOLUTE = ["sinusoidal", "learned"]
LEARNS = {"learned": (16, WIDTH), "t5": (32, HEADS), "shaw": (33, WIDTH // HEADS)}


def shaken(model, seed=0):
    """Return `model` with every parameter moved: attention that is far from uniform."""
    rng = np.random.default_rng(seed)
    for array in model.parameters().values():
        array += 0.3 * rng.standard_normal(array.shape)
    return model


def encoder(encoding="none", seed=0, **options):
    rng = np.random.default_rng(seed)
    options = {"max_length": 16} | options
    sizes = (WIDTH, HEADS, FF, options.pop("n_layers", LAYERS))
    return shaken(Encoder(VOCABULARY, *sizes, rng=rng, encoding=encoding, **options), seed)


def whole(encoding="sinusoidal", seed=0, **options):
    rng = np.random.default_rng(seed)
    model = Transformer(
        9, VOCABULARY, WIDTH, HEADS, FF, LAYERS, rng=rng, encoding=encoding, **options
    )
    return shaken(model, seed)


def tokens(seed=1, batch=2, length=7):
    return np.random.default_rng(seed).integers(VOCABULARY, size=(batch, length))


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-10)


# --- order: seen or not ---------------------------------------------------------------------------


@settings(deadline=None)
@given(seed=st.integers(0, 2**16), length=st.integers(2, 8), norm=st.sampled_from(["pre", "post"]))
def test_without_encoding_permuting_the_tokens_permutes_the_vectors(seed, length, norm):
    model, ids = encoder("none", seed, norm=norm), tokens(seed, length=length)
    order = np.random.default_rng(seed).permutation(length)
    close(model(ids[:, order]), model(ids)[:, order])


@pytest.mark.parametrize("encoding", WITH_POSITION)
def test_every_encoding_breaks_that(encoding):
    model, ids, order = encoder(encoding), tokens(), [2, 0, 1, 3, 6, 5, 4]
    assert np.abs(model(ids[:, order]) - model(ids)[:, order]).max() > 1e-2


def test_symmetric_alibi_cannot_tell_a_text_from_its_mirror_image():
    """It counts distance without direction, so it needs a causal mask to know which came first."""
    ids = tokens()
    close(encoder("alibi")(ids[:, ::-1]), encoder("alibi")(ids)[:, ::-1])
    causal = encoder("alibi", causal=True)
    assert np.abs(causal(ids[:, ::-1]) - causal(ids)[:, ::-1]).max() > 1e-2


def test_two_causal_layers_without_encoding_tell_orders_apart_one_does_not():
    ids = np.array([[3, 1, 4, 7]])
    other = ids[:, [2, 0, 1, 3]]  # another order of the tokens before the last
    for n_layers, different in ((1, False), (2, True)):
        model = encoder("none", causal=True, n_layers=n_layers)
        gap = np.abs(model(ids)[:, -1] - model(other)[:, -1]).max()
        assert (gap > 1e-2) if different else (gap < 1e-10)


@settings(deadline=None)
@given(seed=st.integers(0, 2**16), now=st.integers(0, 5), encoding=st.sampled_from(ENCODINGS))
def test_a_causal_encoder_leaks_nothing_from_the_future(seed, now, encoding):
    model, ids = encoder(encoding, seed, causal=True), tokens(seed)
    other = ids.copy()
    other[:, now + 1 :] = (other[:, now + 1 :] + 1) % VOCABULARY
    before, after = model(ids), model(other)
    close(after[:, : now + 1], before[:, : now + 1])
    assert np.abs(after[:, now + 1] - before[:, now + 1]).max() > 1e-6


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_bidirectional_encoder_reads_the_future(encoding):
    model, ids = encoder(encoding), tokens()
    other = ids.copy()
    other[:, -1] = (other[:, -1] + 1) % VOCABULARY
    assert np.abs(model(ids)[:, 0] - model(other)[:, 0]).max() > 1e-4


# --- where the position enters --------------------------------------------------------------------


def silenced(model):
    """Return `model` with sub-layers that add nothing, so that the input reaches the last norm."""
    for name, array in model.parameters().items():
        if "output" in name or "second" in name:
            array[...] = 0
    return model


def first_layer_input(model, ids):
    """Undo nothing and guess nothing: normalise √d · E + P as the silenced model does."""
    embedded = model.embedding.table[ids] * np.sqrt(WIDTH)
    return lambda added: model.last_norm(embedded + added)


@pytest.mark.parametrize("where", [None, "input", 0, 1])
def test_the_sinusoid_is_added_once_to_scaled_embeddings(where):
    model, ids = silenced(encoder("sinusoidal", where=where)), tokens()
    expected = first_layer_input(model, ids)
    close(model(ids), expected(sinusoidal_encoding(7, WIDTH)))


def test_at_every_layer_it_is_added_as_often_as_there_are_layers():
    model, ids = silenced(encoder("sinusoidal", where="every")), tokens()
    expected = first_layer_input(model, ids)
    close(model(ids), expected(LAYERS * sinusoidal_encoding(7, WIDTH)))


def test_a_learned_table_is_scaled_like_the_embeddings():
    model, ids = silenced(encoder("learned")), tokens()
    expected = first_layer_input(model, ids)
    close(model(ids), expected(np.sqrt(WIDTH) * model.encoding.lookup.table[:7]))


def test_scaled_embeddings_are_as_large_as_the_encoding():
    model = Encoder(500, 64, 4, 8, 1, rng=np.random.default_rng(0))
    size = np.linalg.norm(model.embedding(np.arange(500)[np.newaxis]), axis=-1).mean()
    assert abs(size / np.sqrt(64) - 1) < 0.02  # unscaled it would be 1, not √64
    assert np.allclose(np.linalg.norm(sinusoidal_encoding(9, 64), axis=-1), np.sqrt(64 / 2))


@pytest.mark.parametrize("encoding", WITH_POSITION)
def test_late_is_late(encoding):
    """With the same weights, layer 0 attends as if there were no encoding, layer 1 does not."""
    plain, late = encoder("none"), encoder(encoding, where=1)
    for name, array in plain.parameters().items():
        late.parameters()[name][...] = array
    maps, plain_maps = late.attention_maps(tokens()), plain.attention_maps(tokens())
    np.testing.assert_array_equal(maps[0], plain_maps[0])
    assert np.abs(maps[1] - plain_maps[1]).max() > 1e-3


@pytest.mark.parametrize(
    ("encoding", "where", "reached"),
    [
        (Sinusoidal(8), None, {0}),
        (Sinusoidal(8), "input", {0}),
        (Sinusoidal(8), "every", {0, 1, 2}),
        (Sinusoidal(8), 2, {2}),
        (Rotary(), None, {0, 1, 2}),
        (Rotary(), "every", {0, 1, 2}),
        (Rotary(), 1, {1, 2}),
        (Injection(), None, {0, 1, 2}),
    ],
)
def test_layers_reached(encoding, where, reached):
    assert encoding.layers_reached(where, 3) == reached


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_only_tables_that_learn_are_parameters(encoding):
    parameters = encoder(encoding).parameters()
    tables = {n: a.shape for n, a in parameters.items() if n.startswith("encoding")}
    assert tables == ({"encoding.table": LEARNS[encoding]} if encoding in LEARNS else {})


def test_number_of_parameters():
    norms, linear = 2 * WIDTH, lambda n, m: n * m + m
    layer = 4 * linear(WIDTH, WIDTH) + linear(WIDTH, FF) + linear(FF, WIDTH) + 2 * norms
    count = lambda model: sum(a.size for a in model.parameters().values())  # noqa: E731
    assert count(encoder()) == VOCABULARY * WIDTH + LAYERS * layer + norms
    assert count(encoder(norm="post")) == VOCABULARY * WIDTH + LAYERS * layer
    decoder_layer = layer + 4 * linear(WIDTH, WIDTH) + norms
    both = (VOCABULARY + 9) * WIDTH + LAYERS * (layer + decoder_layer) + 2 * norms
    assert count(whole()) == both + linear(WIDTH, VOCABULARY)


def test_causal_t5_spends_all_buckets_on_the_past():
    assert encoder("t5", causal=True).encoding.bidirectional is False
    assert encoder("t5").encoding.bidirectional is True


def test_an_encoding_of_your_own():
    class Backwards(Injection):
        inside_attention = False

        def embed(self, positions):
            return sinusoidal_encoding(-positions, WIDTH)

    model, ids = encoder(Backwards()), tokens()
    close(model(ids), encoder("sinusoidal")(ids, positions=-np.arange(7)))


# --- positions: padding, packing, caches ----------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_left_padding_equals_right_padding_on_real_tokens(encoding, causal):
    model, ids = encoder(encoding, causal=causal), tokens(batch=2)
    lengths = (4, 7)
    right, left = np.zeros_like(ids), np.zeros_like(ids)
    for row, n in enumerate(lengths):
        right[row, :n], left[row, 7 - n :] = ids[row, :n], ids[row, :n]
    real = padding_mask(lengths)
    outputs = {}
    for side, padded, mask in (("right", right, real), ("left", left, real[:, ::-1])):
        vectors = model(padded, mask=mask[:, None, None, :], positions=position_ids(mask))
        outputs[side] = vectors[mask]
    close(outputs["left"], outputs["right"])
    close(outputs["left"][:4], model(ids[:1, :4])[0])


@pytest.mark.parametrize("encoding", ABSOLUTE)
def test_counting_from_the_padding_is_wrong_for_absolute_encodings(encoding):
    model, ids = encoder(encoding), tokens(batch=1, length=4)
    padded = np.concatenate([np.zeros((1, 3), int), ids], axis=1)
    real = np.array([[False] * 3 + [True] * 4])
    wrong = model(padded, mask=real[:, None, None, :])  # positions 3 … 6 for the real tokens
    assert np.abs(wrong[real] - model(ids)[0]).max() > 1e-2


@pytest.mark.parametrize("encoding", ["rotary", "t5", "alibi", "shaw"])
def test_counting_from_the_padding_is_harmless_for_relative_encodings(encoding):
    model, ids = encoder(encoding), tokens(batch=1, length=4)
    padded = np.concatenate([np.zeros((1, 3), int), ids], axis=1)
    real = np.array([[False] * 3 + [True] * 4])
    close(model(padded, mask=real[:, None, None, :])[real], model(ids)[0])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_packing_equals_separate_runs(encoding, causal):
    model, lengths = encoder(encoding, causal=causal), [3, 4]
    ids = tokens(batch=1)
    packed = model(ids, mask=document_mask(lengths), positions=packed_position_ids(lengths))
    separate = [model(ids[:, :3]), model(ids[:, 3:])]
    close(packed, np.concatenate(separate, axis=1))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_positions_that_go_on_through_a_packed_row_matter_to_absolute_encodings_only(encoding):
    model, lengths = encoder(encoding), [3, 4]
    ids = tokens(batch=1)
    wrong = model(ids, mask=document_mask(lengths))
    gap = np.abs(wrong[:, 3:] - model(ids[:, 3:])).max()
    assert (gap > 1e-2) if encoding in ABSOLUTE else (gap < 1e-9)


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**16),
    cuts=st.sets(st.integers(1, 6)),
    encoding=st.sampled_from(ENCODINGS),
    norm=st.sampled_from(["pre", "post"]),
    where=st.sampled_from([None, "every", 1]),
)
def test_cached_decoding_equals_full_decoding(seed, cuts, encoding, norm, where):
    model = encoder(encoding, seed, causal=True, norm=norm, where=where)
    ids, cache = tokens(seed), model.new_cache()
    parts = [model(part, cache=cache) for part in np.split(ids, sorted(cuts), axis=1)]
    close(np.concatenate(parts, axis=1), model(ids))
    assert [entry.length for entry in cache] == [7] * LAYERS


@pytest.mark.parametrize("encoding", ABSOLUTE)
def test_a_cached_step_at_position_zero_is_wrong(encoding):
    """The usual mistake in decoding: the new query starts again at 0."""
    model, ids = encoder(encoding, causal=True), tokens()
    cache = model.new_cache()
    model(ids[:, :6], cache=cache)
    wrong = model(ids[:, 6:], cache=cache, positions=[0])
    assert np.abs(wrong - model(ids)[:, 6:]).max() > 1e-2


def test_positions_advance_by_what_is_cached():
    """Prompt of 6, then one token at a time: 0, 6, 7, 8."""
    starts = []

    class Watching(Sinusoidal):
        def embed(self, positions):
            starts.append(int(positions[0]))
            return super().embed(positions)

    model = encoder(Watching(WIDTH), causal=True)
    cache = model.new_cache()
    for length in (6, 1, 1, 1):
        model(tokens(length=length), cache=cache)
    assert starts == [0, 6, 7, 8]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_cached_decoding_of_a_left_padded_batch(encoding):
    model, ids = encoder(encoding, causal=True), tokens()
    real = np.array([[False, False, True, True, True, True, True], [True] * 7])
    places = position_ids(real)
    full = model(ids, mask=real[:, None, None, :], positions=places)
    cache, parts = model.new_cache(), []
    for start, end in ((0, 5), (5, 6), (6, 7)):
        mask = real[:, None, None, :end]
        parts.append(
            model(ids[:, start:end], mask=mask, positions=places[:, start:end], cache=cache)
        )
    close(np.concatenate(parts, axis=1)[real], full[real])
    close(full[0, 2:], model(ids[:1, 2:])[0])


def test_a_refused_call_leaves_the_cache_as_it_was():
    model = encoder("rotary", causal=True)
    cache = model.new_cache()
    model(tokens(), cache=cache)
    with pytest.raises(ValueError, match=r"mask must have shape"):
        model(tokens(length=1), mask=np.ones((1, 7), bool), cache=cache)
    with pytest.raises(ValueError, match=r"cache must hold 1 rows like the input, got 2"):
        model(tokens(batch=1), cache=cache)
    assert [entry.length for entry in cache] == [7, 7]


def test_any_length_for_the_formula_and_the_number_of_rows_for_a_table():
    ids = tokens(length=17)
    assert encoder("sinusoidal")(ids).shape == (2, 17, WIDTH)
    with pytest.raises(IndexError, match=r"16 rows, got 16"):
        encoder("learned")(ids)
    with pytest.raises(IndexError, match=r"got -1"):
        encoder("learned")(ids[:, :3], positions=[0, 1, -1])


# --- layers and maps ------------------------------------------------------------------------------


def test_pre_norm_keeps_the_input_and_post_norm_normalises_it():
    x = 10 * np.random.default_rng(0).standard_normal((2, 5, WIDTH))
    for norm in ("pre", "post"):
        layer = EncoderLayer(WIDTH, HEADS, FF, rng=np.random.default_rng(0), norm=norm)
        for name, array in layer.parameters().items():
            if "output" in name or "second" in name:
                array[...] = 0
        expected = x if norm == "pre" else LayerNorm(WIDTH)(LayerNorm(WIDTH)(x))
        close(layer(x), expected)


def test_a_decoder_layer_is_causal_and_reads_all_of_the_memory():
    layer = shaken(DecoderLayer(WIDTH, HEADS, FF, rng=np.random.default_rng(0)))
    rng = np.random.default_rng(1)
    x, memory = rng.standard_normal((2, 5, WIDTH)), rng.standard_normal((2, 7, WIDTH))
    later, other = x.copy(), memory.copy()
    later[:, 3:] *= -1
    other[:, 6] += 1
    close(layer(later, memory)[:, :3], layer(x, memory)[:, :3])
    assert np.abs(layer(x, other)[:, 0] - layer(x, memory)[:, 0]).max() > 1e-4
    open_layer = DecoderLayer(WIDTH, HEADS, FF, rng=np.random.default_rng(0), causal=False)
    assert np.abs(open_layer(later, memory)[:, :3] - open_layer(x, memory)[:, :3]).max() > 1e-4


@pytest.mark.parametrize("layer_type", [EncoderLayer, DecoderLayer])
def test_a_layer_with_an_encoding_of_its_own_call(layer_type):
    layer = shaken(layer_type(WIDTH, HEADS, FF, rng=np.random.default_rng(0), causal=True))
    x = np.random.default_rng(1).standard_normal((2, 5, WIDTH))
    memory = [x] if layer_type is DecoderLayer else []
    turned = layer(x, *memory, encoding=Rotary())
    assert np.abs(turned - layer(x, *memory)).max() > 1e-3
    shifted = layer(x, *memory, encoding=Rotary(), positions=1000 + np.arange(5))
    np.testing.assert_allclose(shifted, turned, atol=1e-9)  # the score sees the offset only
    cache = KeyValueCache()
    parts = [layer(part, *memory, encoding=Rotary(), cache=cache) for part in (x[:, :3], x[:, 3:])]
    close(np.concatenate(parts, axis=1), turned)
    assert layer(x.astype(np.float32), *memory).dtype == np.float32


def test_plain_layers_keep_float32():
    rng = np.random.default_rng(0)
    x = np.ones((2, 5, WIDTH), np.float32)
    for layer in (LayerNorm(WIDTH), FeedForward(WIDTH, FF, rng=rng), Linear(WIDTH, 3, rng=rng)):
        assert layer(x).dtype == np.float32


def test_layer_norm_is_finite_for_constant_vectors_and_ignores_scale():
    norm = LayerNorm(4)
    np.testing.assert_array_equal(norm(np.full((2, 4), 7.0)), np.zeros((2, 4)))
    x = np.random.default_rng(0).standard_normal((3, 4))
    np.testing.assert_allclose(norm(1000 * x + 5), norm(1000 * x), atol=1e-9)
    np.testing.assert_allclose((norm(1000 * x) ** 2).mean(axis=-1), 1, atol=1e-6)


def test_gelu_is_exact():
    layer = FeedForward(1, 1, rng=np.random.default_rng(0), activation="gelu")
    for array in layer.parameters().values():
        array[...] = 1 if array.ndim == 2 else 0
    # x · Φ(x) at 1 and −2; the tanh approximation would miss by 1.5e-4 and 1.8e-4.
    np.testing.assert_allclose(layer([[1.0], [-2.0]]).ravel(), [0.8413447461, -0.0455002639])


def test_attention_maps():
    ids, model = tokens(), encoder("rotary", causal=True)
    maps = model.attention_maps(ids)
    assert [m.shape for m in maps] == [(2, HEADS, 7, 7)] * LAYERS
    assert all((np.triu(m[0, 0], 1) == 0).all() for m in maps)
    rng = np.random.default_rng(0)
    decoder = shaken(Decoder(VOCABULARY, WIDTH, HEADS, FF, LAYERS, rng=rng))
    memory = rng.standard_normal((2, 5, WIDTH))
    memory_mask = padding_mask([3, 5])[:, None, None, :]
    own, cross = decoder.attention_maps(ids, memory, memory_mask=memory_mask)
    assert [m.shape for m in own] == [(2, HEADS, 7, 7)] * LAYERS
    assert [m.shape for m in cross] == [(2, HEADS, 7, 5)] * LAYERS
    assert (cross[1][0, :, :, 3:] == 0).all()


# --- encoder and decoder together -----------------------------------------------------------------


def test_a_target_does_not_show_itself():
    """Scores at place t may depend on the target up to t, which is the answer before the next."""
    model, source, target = whole(), tokens(2) % 9, tokens(3)
    other = target.copy()
    other[:, 4] = (other[:, 4] + 1) % VOCABULARY
    before, after = model(source, target), model(source, other)
    close(after[:, :4], before[:, :4])
    assert np.abs(after[:, 4] - before[:, 4]).max() > 1e-4
    leaky = whole(causal=False)
    assert np.abs(leaky(source, other)[:, 3] - leaky(source, target)[:, 3]).max() > 1e-4


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_stands_in_padding_changes_nothing(encoding):
    model, source, target = whole(encoding), tokens(2) % 9, tokens(3, length=5)
    source_mask, target_mask = padding_mask([4, 7]), padding_mask([5, 3])
    other_source = np.where(source_mask, source, 8)
    other_target = np.where(target_mask, target, 0)
    masks = {"source_mask": source_mask, "target_mask": target_mask}
    scores = model(source, target, **masks)
    close(model(other_source, other_target, **masks)[target_mask], scores[target_mask])
    close(scores[1, :3], model(source[1:], target[1:, :3])[0])


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_left_padded_sources_and_targets(encoding):
    model, source, target = whole(encoding), tokens(2, batch=1) % 9, tokens(3, batch=1, length=5)
    left_source = np.concatenate([np.zeros((1, 2), int), source], axis=1)
    left_target = np.concatenate([np.zeros((1, 3), int), target], axis=1)
    masks = {
        "source_mask": np.arange(9)[np.newaxis] >= 2,
        "target_mask": np.arange(8)[np.newaxis] >= 3,
    }
    close(model(left_source, left_target, **masks)[:, 3:], model(source, target))


@pytest.mark.parametrize("encoding", ABSOLUTE)
def test_positions_can_be_given_by_hand(encoding):
    model, source, target = whole(encoding), tokens(2) % 9, tokens(3, length=5)
    usual = model(source, target)
    close(model(source, target, source_positions=np.arange(7)), usual)
    shifted = model(source, target, source_positions=1 + np.arange(7))
    assert np.abs(shifted - usual).max() > 1e-3
    shifted = model(source, target, target_positions=np.tile(1 + np.arange(5), (2, 1)))
    assert np.abs(shifted - usual).max() > 1e-3


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_cached_decoder_step_by_step(encoding):
    model, source, target = whole(encoding), tokens(2) % 9, tokens(3, length=5)
    source_mask = padding_mask([4, 7])
    target_mask = np.array([[False, True, True, True, True], [True] * 5])
    full = model(source, target, source_mask=source_mask, target_mask=target_mask)
    memory, cache = model.encode(source, source_mask=source_mask), model.decoder.new_cache()
    for t in range(5):
        step = model.decode(
            target[:, t : t + 1],
            memory,
            source_mask=source_mask,
            target_mask=target_mask[:, : t + 1],
            cache=cache,
        )
        close(step[:, 0][target_mask[:, t]], full[:, t][target_mask[:, t]])


def test_generating_is_taking_the_best_token_again_and_again():
    model, source = whole("rotary"), tokens(2) % 9
    source_mask = padding_mask([4, 7])
    target = np.full((2, 1), 10)
    for _ in range(6):
        scores = model(source, target, source_mask=source_mask)
        target = np.concatenate([target, scores[:, -1:].argmax(axis=-1)], axis=1)
    written = model.generate(source, 10, 6, source_mask=source_mask)
    np.testing.assert_array_equal(written, target[:, 1:])
    assert len(np.unique(written)) > 1
    assert model.generate(source, 10, 0).shape == (2, 0)


def test_forward_is_the_call_without_checks():
    model, source, target = whole("learned"), tokens(2) % 9, tokens(3, length=5)
    masks = {"source_mask": padding_mask([4, 7]), "target_mask": padding_mask([5, 3])}
    np.testing.assert_array_equal(
        model.forward(source, target, **masks)[0], model(source, target, **masks)
    )
    tagger = shaken(Tagger(VOCABULARY, WIDTH, HEADS, FF, LAYERS, rng=np.random.default_rng(0)))
    np.testing.assert_array_equal(tagger.forward(target)[0], tagger(target))


def test_the_same_seed_gives_the_same_model():
    ids = tokens()
    np.testing.assert_array_equal(encoder("shaw", 4)(ids), encoder("shaw", 4)(ids))
    assert np.abs(encoder("shaw", 4)(ids) - encoder("shaw", 5)(ids)).max() > 0.1


# --- border ---------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
SIZES = (WIDTH, HEADS, FF, LAYERS)
X = np.ones((2, 5, WIDTH))


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: LayerNorm(0), ValueError, "d_model must be at least 1, got 0"),
        (lambda: LayerNorm(4, eps=0), ValueError, "eps must be a finite number greater than 0"),
        (lambda: FeedForward(4, 0, rng=RNG), ValueError, "d_ff must be at least 1"),
        (lambda: FeedForward(4, 8, rng=None), TypeError, "rng must be a numpy"),
        (lambda: FeedForward(4, 8, rng=RNG, activation="tanh"), ValueError, "'relu', 'gelu'"),
        (lambda: Linear(4, 0, rng=RNG), ValueError, "n_out must be at least 1"),
        (lambda: Linear(4, 2, rng=RNG, bias="no"), TypeError, "bias must be True or False"),
        (lambda: Embedding(0, 4, rng=RNG), ValueError, "vocab_size must be at least 1"),
        (lambda: EncoderLayer(12, 5, 8, rng=RNG), ValueError, "n_heads must divide"),
        (lambda: EncoderLayer(12, 3, 8, rng=RNG, norm="no"), ValueError, "norm must be one of"),
        (lambda: EncoderLayer(12, 3, 8, rng=RNG, causal=1), TypeError, "causal must be True"),
        (lambda: DecoderLayer(12, 3, 8, rng=RNG, norm=None), TypeError, "norm must be a string"),
        (lambda: Encoder(9, 12, 3, 8, 0, rng=RNG), ValueError, "n_layers must be at least 1"),
        (lambda: Encoder(9, *SIZES, rng=RNG, encoding="rope"), ValueError, "encoding must be one"),
        (lambda: Encoder(9, *SIZES, rng=RNG, encoding=None), TypeError, "encoding must be a str"),
        (lambda: Encoder(9, *SIZES, rng=RNG, causal="yes"), TypeError, "causal must be True"),
        (lambda: Encoder(9, *SIZES, rng=RNG, where=2), ValueError, "where must be below the num"),
        (lambda: Encoder(9, *SIZES, rng=RNG, where=-1), ValueError, "where must be at least 0"),
        (lambda: Encoder(9, *SIZES, rng=RNG, where="late"), ValueError, "where must be one of"),
        (lambda: Encoder(9, *SIZES, rng=RNG, where=1.0), TypeError, "where must be an integer"),
        (
            lambda: Encoder(9, *SIZES, rng=RNG, encoding="t5", where="input"),
            ValueError,
            "where must be .* for T5, which acts inside the attention",
        ),
        (
            lambda: Encoder(9, *SIZES, rng=RNG, encoding="learned", max_length=0),
            ValueError,
            "max_length must be at least 1",
        ),
        (
            lambda: Encoder(9, 9, 3, 8, 1, rng=RNG, encoding="rotary"),
            ValueError,
            "must be even .* 9",
        ),
        (lambda: Tagger(9, *SIZES, rng=3), TypeError, "rng must be a numpy"),
        (lambda: Transformer(9, 0, *SIZES, rng=RNG), ValueError, "vocab_size must be at least 1"),
        (lambda: Transformer(9, 9, *SIZES, rng=RNG, encoding=Rotary()), TypeError, "encoding must"),
        (lambda: Sinusoidal(0), ValueError, "d_model must be at least 1"),
        (lambda: Learned(0, 4, rng=RNG), ValueError, "max_length must be at least 1"),
        (lambda: Rotary(base="big"), TypeError, "base must be a real number"),
        (lambda: T5(0, rng=RNG), ValueError, "n_heads must be at least 1"),
        (lambda: T5(3, rng=RNG, num_buckets=5), ValueError, "num_buckets must be even"),
        (lambda: T5(3, rng=RNG, max_distance=2), ValueError, "max_distance must be at least"),
        (lambda: ALiBi(0), ValueError, "n_heads must be at least 1"),
        (lambda: Shaw(4, rng=RNG, max_distance=-1), ValueError, "max_distance must be at least 0"),
        (lambda: encoding_named("no", 12, 3, rng=RNG), ValueError, "encoding must be one of"),
    ],
)
def test_constructors_refuse(build, error, message):
    with pytest.raises(error, match=message):
        build()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: LayerNorm(4)(np.ones((2, 5))), ValueError, r"x must have shape \(\.\.\., 4\)"),
        (lambda: LayerNorm(4)(3.0), ValueError, r"got \(\)"),
        (lambda: FeedForward(4, 8, rng=RNG)("no"), TypeError, "x must be an array of real"),
        (lambda: Linear(4, 8, rng=RNG)([[np.inf] * 4]), ValueError, "x must be finite"),
        (lambda: encoder()(X), TypeError, "tokens must be an array of integers"),
        (lambda: encoder()([1, 2]), ValueError, r"tokens must have shape \(batch, length\)"),
        (lambda: encoder()([[11]]), IndexError, "below the vocabulary size 11, got 11"),
        (lambda: encoder()([[-1]]), ValueError, "tokens must be at least 0, got -1"),
        (lambda: encoder()([[1, 2]], mask=np.ones((2, 2))), TypeError, "mask must be boolean"),
        (
            lambda: encoder()(tokens(), mask=padding_mask([3, 7])),
            ValueError,
            r"mask\[:, None, None, :\]",
        ),
        (lambda: encoder()(tokens(), positions=np.arange(6)), ValueError, r"positions must have"),
        (lambda: encoder()(tokens(), positions=["a"] * 7), TypeError, r"positions must be an arr"),
        (lambda: encoder()(tokens(), positions=[np.nan] * 7), ValueError, r"positions must be fin"),
        (lambda: encoder("learned")(tokens(), positions=[0.5] * 7), TypeError, r"array of integer"),
        (lambda: encoder()(tokens(), cache=[KeyValueCache()]), ValueError, r"new_cache\(\)"),
        (lambda: encoder("learned")(tokens(), positions=[99] * 7), IndexError, "16 rows, got 99"),
        (
            lambda: EncoderLayer(*SIZES[:3], rng=RNG)(X[0]),
            ValueError,
            r"x must have shape \(batch, length, 12\), got \(5, 12\)",
        ),
        (
            lambda: DecoderLayer(*SIZES[:3], rng=RNG)(X, X[:1]),
            ValueError,
            r"memory must have shape \(2, length, 12\), got \(1, 5, 12\)",
        ),
        (
            lambda: DecoderLayer(*SIZES[:3], rng=RNG)(X, X, memory_mask=np.ones((4, 5), bool)),
            ValueError,
            r"memory_mask must have shape",
        ),
        (
            lambda: Decoder(9, *SIZES, rng=RNG)([[1]], X[..., :4]),
            ValueError,
            r"memory must have shape \(1, length, 12\)",
        ),
        (
            lambda: whole()([[1]], [[1]], source_mask=[True]),
            ValueError,
            r"source_mask must have shape \(batch, length\)",
        ),
        (
            lambda: whole()([[1]], [[1]], target_mask=[[1]]),
            TypeError,
            r"target_mask must be boolean",
        ),
        (lambda: whole().generate([[1]], 99, 2), IndexError, "vocabulary size 11, got 99"),
        (lambda: whole().generate([[1]], 1, -2), ValueError, "length must be at least 0"),
    ],
)
def test_calls_refuse(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_padding_mask_joined_with_a_causal_one_is_accepted_whole():
    model, ids = encoder(), tokens()
    padding = padding_mask([3, 7])[:, None, None, :]
    joined = model(ids, mask=combine(causal_mask(7), padding))
    close(joined, encoder(causal=True)(ids, mask=padding))
