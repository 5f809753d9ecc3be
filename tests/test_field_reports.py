"""What went wrong with positions, masks and shapes in real code, as tests of the right behaviour.

Each test names a public report of the fault it guards against (owner/repository#number on GitHub).
They are grouped by what the programmer saw: a crash, silence, or something that looked wrong and
was right. Values are those of the report's own small example, computed here.
"""

import numpy as np
import pytest

from posenc import (
    DynamicNTKScaling,
    LearnedEncoding,
    LinearScaling,
    add_positions,
    alibi_bias,
    alibi_slopes,
    apply_rotary,
    causal_mask,
    clipped_relative_positions,
    combine,
    document_mask,
    frequencies,
    packed_position_ids,
    padding_mask,
    position_ids,
    rotary_frequencies,
    scaled_dot_product_attention,
    sinusoidal_encoding,
    softmax,
    t5_bias,
    t5_buckets,
)
from posenc.tasks import Reverse
from posenc.transformer import Encoder, Tagger, Transformer

RNG = np.random.default_rng(5)


def model(**options):
    """A small encoder whose numbers of words, heads and layers all differ."""
    return Encoder(11, 12, 3, 20, 2, rng=np.random.default_rng(1), **options)


def bfloat16(x):
    """Round float32 to the 8 significant bits of bfloat16, halves to even."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return rounded.astype(np.uint32).view(np.float32)


class TestCrashes:
    """It raised, or should have raised with a message that helps."""

    def test_an_odd_width_has_one_cosine_less(self):
        """codertimo/BERT-pytorch#78: (4, 3) does not fit into (4, 2)."""
        row = sinusoidal_encoding([1], 5)[0]
        np.testing.assert_allclose(row, [0.841471, 0.540302, 0.025116, 0.999685, 0.000631], 1e-3)

    @pytest.mark.parametrize("d_model", [1, 2, 3])
    def test_a_single_frequency_divides_by_nothing(self, d_model):
        """fairseq's and Whisper's log(10000) / (half − 1) divides by zero at half = 1."""
        row = sinusoidal_encoding([1], d_model)[0]
        np.testing.assert_allclose(row, [0.841471, 0.540302, 0.002154][:d_model], 1e-3)

    def test_a_table_for_another_layout_is_named(self):
        """KasperGroesLudvigsen/influenza_transformer#9: (3, 20, 6) + (10, 1, 6)."""
        with pytest.raises(ValueError, match=r"\(3, 20, 6\), got \(10, 1, 6\)\. This looks"):
            add_positions(np.zeros((3, 20, 6)), np.zeros((10, 1, 6)))

    @pytest.mark.parametrize("position", [100, -1])
    def test_a_position_past_a_learned_table_is_named(self, position):
        """bentrevett/pytorch-seq2seq#89: "index out of range" says neither number."""
        encoding = LearnedEncoding(100, 4, rng=RNG)
        with pytest.raises(IndexError, match=rf"the table has 100 rows, got {position}"):
            encoding([99, position])

    def test_an_input_longer_than_a_sinusoid_table_needs_no_longer_table(self):
        """SamLynnEvans/Transformer#14: 207 tokens, 200 rows of a formula without an end."""
        np.testing.assert_array_equal(
            sinusoidal_encoding(207, 8)[:200], sinusoidal_encoding(200, 8)
        )

    def test_distances_beyond_a_relative_table_are_clipped(self):
        """huggingface/transformers#9164."""
        row = clipped_relative_positions(1, 7, 4)[0] + 4
        np.testing.assert_array_equal(row, [0, 0, 0, 1, 2, 3, 4])
        assert clipped_relative_positions(9, 9, 4).max() + 4 == 8

    def test_relative_positions_of_five_tokens_take_nine_values(self):
        """lucidrains/global-self-attention-network#2: a table of L rows is too short."""
        assert np.unique(clipped_relative_positions(5, 5, 10)).size == 2 * 5 - 1

    def test_positions_up_to_the_scaled_length_can_be_rotated(self):
        """vllm-project/vllm#55910: a cache of angles sized by the unscaled length."""
        x = RNG.normal(size=(16, 4))
        rotated = apply_rotary(x, np.arange(16), scaling=LinearScaling(2.0))
        np.testing.assert_allclose(rotated, apply_rotary(x, np.arange(16) / 2))

    @pytest.mark.parametrize("n_heads", [6, 12, 20])
    def test_alibi_has_slopes_for_every_number_of_heads(self, n_heads):
        """ml-explore/mlx#343: the released rule, not the formula, beyond powers of two."""
        slopes = alibi_slopes(n_heads)
        assert len(set(slopes)) == n_heads
        if n_heads == 6:
            np.testing.assert_allclose(slopes, [0.25, 1 / 16, 1 / 64, 1 / 256, 0.5, 0.125])
            assert not np.allclose(slopes, 2.0 ** (-8 * np.arange(1, 7) / 6))

    def test_no_alias_of_numpy_that_is_gone_is_used(self):
        """facebookresearch/mae#202: np.float left NumPy in 1.24; dtypes go by their names here."""
        assert sinusoidal_encoding(3, 4, dtype=float).dtype == np.float64


class TestSilence:
    """It ran, and was wrong."""

    def test_the_columns_of_a_pair_share_a_frequency(self):
        """Kyubyong/transformer#38: the column's number taken for the pair's."""
        row = sinusoidal_encoding([1], 4)[0]
        np.testing.assert_allclose(row, [0.841471, 0.540302, 0.01, 0.99995], 1e-4)

    def test_the_exponent_is_not_doubled(self):
        """intro-llm/intro-llm.github.io#34: passes every test of symmetry, fails a value."""
        assert frequencies(512)[-1] == pytest.approx(1.04e-4, rel=0.01)
        assert sinusoidal_encoding([1], 4)[0, 2] == pytest.approx(0.01, rel=1e-4)

    def test_frequencies_are_no_integers(self):
        """codertimo/BERT-pytorch#18: log(10000)/d cut to 0 makes every frequency 1."""
        assert np.unique(frequencies(128)).size == 64
        assert np.linalg.matrix_rank(sinusoidal_encoding(200, 16)) == 16
        with pytest.raises(TypeError, match="floating-point dtype"):
            sinusoidal_encoding(4, 6, dtype=int)

    def test_the_cosines_have_the_exponents_of_their_sines(self):
        """maxjcohen/transformer#62: base 1000, and cosine exponents that start at 1."""
        row = sinusoidal_encoding([1], 4)[0]
        assert row[1] == pytest.approx(np.cos(1))
        assert row[2] == pytest.approx(np.sin(0.01))

    @pytest.mark.parametrize("where", ["input", 1])
    def test_an_encoder_adds_its_encoding_exactly_once(self, where):
        """DSPsleeporg/smiles-transformer#22 (twice), pytorch-lightning#20099 (never)."""
        tokens = np.full((1, 5), 3)
        with_positions = model(encoding="sinusoidal", where=where)(tokens)[0]
        without = model(encoding="none")(tokens)[0]
        assert np.ptp(without, axis=0).max() < 1e-12, "equal words without positions are equal"
        assert np.ptp(with_positions, axis=0).max() > 1e-3
        once = add_positions(np.zeros((2, 5, 4)), sinusoidal_encoding(5, 4))
        np.testing.assert_array_equal(once[1], sinusoidal_encoding(5, 4))

    def test_embeddings_are_scaled_by_the_square_root_of_the_width(self):
        """SamLynnEvans/Transformer#10, OpenNMT/OpenNMT-py#1328: the factor is in section 3.4."""
        embeddings = RNG.normal(0, 512**-0.5, size=(1000, 512))
        assert np.linalg.norm(embeddings, axis=1).mean() == pytest.approx(1.0, abs=0.01)
        codes = np.linalg.norm(sinusoidal_encoding(50, 512), axis=1)
        np.testing.assert_allclose(codes, 16)
        encoder = Encoder(11, 512, 4, 8, 1, rng=RNG, encoding="none")
        table = encoder.parameters()["embedding.table"]
        assert np.linalg.norm(table, axis=1).mean() == pytest.approx(1.0, abs=0.1)

    @pytest.mark.parametrize("batch", [3, 1, 4])
    def test_positions_go_by_the_token_not_by_the_sentence(self, batch):
        """AkiRusProd/numpy-transformer#1: a time-first table cut by the batch size."""
        time_first = sinusoidal_encoding(10, 6)[:, np.newaxis]
        with pytest.raises(ValueError, match="time-first"):
            add_positions(np.zeros((batch, 4, 6)), time_first[: max(batch, 2)])
        right = add_positions(np.zeros((batch, 4, 6)), time_first[:4, 0])
        np.testing.assert_array_equal(right[-1], sinusoidal_encoding(4, 6))

    def test_rope_turns_the_length_axis_not_the_heads(self):
        """mlfoundations/open_lm#4: angles over the head axis leave every score unchanged."""
        q, k = RNG.normal(size=(2, 1, 3, 5, 8))  # (batch, heads, length, head_dim)
        plain = q @ k.swapaxes(-1, -2)
        turned = apply_rotary(q, np.arange(5)) @ apply_rotary(k, np.arange(5)).swapaxes(-1, -2)
        assert np.abs(turned - plain).max() > 0.5
        with pytest.raises(ValueError, match="positions"):
            apply_rotary(q.swapaxes(1, 2), np.arange(5))  # length is not where 5 positions fit

    def test_padding_hides_keys_from_every_query(self):
        """hyunwoongko/transformer#40: (B, 1, T, 1) hides queries, and pads are still read."""
        x = np.zeros((1, 1, 4, 2))
        keep = padding_mask([2], 4)
        _, weights = scaled_dot_product_attention(x, x, x, mask=keep[:, None, None, :])
        np.testing.assert_array_equal(weights[0, 0], np.tile([0.5, 0.5, 0, 0], (4, 1)))
        with pytest.raises(ValueError, match="mask must have shape"):
            scaled_dot_product_attention(x, x, x, mask=keep[:, None, :, None])

    def test_weights_sum_to_one_over_the_keys(self):
        """PetrochukM/PyTorch-NLP#2."""
        scores = np.array([[[0.0, 1.0], [2.0, 3.0]]])
        np.testing.assert_allclose(softmax(scores).sum(axis=-1), 1)

    def test_every_row_of_a_batch_has_its_own_positions(self):
        """tatp22/multidim-positional-encoding#2: the first row's positions used for all."""
        positions = np.array([[0, 1], [5, 6]])
        encoding = sinusoidal_encoding(positions, 6)
        np.testing.assert_array_equal(encoding[1, 0], sinusoidal_encoding([5], 6)[0])
        x = RNG.normal(size=(2, 3, 2, 4))
        rotated = apply_rotary(x, positions)
        np.testing.assert_allclose(rotated[1], apply_rotary(x[1], positions[1]))

    def test_an_output_is_as_long_as_its_input_even_if_the_end_is_padding(self):
        """pytorch/pytorch#97111: the nested-tensor path returned the longest real length."""
        tokens = np.full((2, 5), 3)
        mask = padding_mask([3, 2], 5)[:, None, None, :]
        assert model()(tokens, mask=mask).shape == (2, 5, 12)

    def test_left_padding_does_not_move_a_sentence(self):
        """huggingface/transformers#21080, #13481: positions counted over padded columns."""
        real = np.array([[False, False, True, True, True]])
        np.testing.assert_array_equal(position_ids(real), [[0, 0, 0, 1, 2]])
        encoder, tokens = model(encoding="sinusoidal"), np.array([[3, 1, 4]])
        padded = np.concatenate([[[9, 9]], tokens], axis=1)
        out = encoder(padded, mask=real[:, None, None, :], positions=position_ids(real))
        np.testing.assert_allclose(out[:, 2:], encoder(tokens), atol=1e-10)

    def test_counting_from_padding_idx_plus_one_is_an_offset(self):
        """facebookresearch/fairseq#1187: 514 rows serve 512 tokens."""
        ids, pad = np.array([[0, 31414, 2, 1, 1]]), 1
        real = ids != pad
        ours = np.where(real, position_ids(real, offset=pad + 1), pad)
        np.testing.assert_array_equal(ours, [[2, 3, 4, 1, 1]])
        table = LearnedEncoding(514, 2, rng=RNG)
        assert table(position_ids(length=512, offset=2)).shape == (512, 2)
        with pytest.raises(IndexError, match="514"):
            table(position_ids(length=513, offset=2))

    def test_packed_documents_start_at_zero_and_do_not_see_each_other(self):
        """pytorch/torchtitan#2559, allenai/OLMo-core#591: it takes both."""
        np.testing.assert_array_equal(packed_position_ids([3, 4]), [0, 1, 2, 0, 1, 2, 3])
        mask = combine(document_mask([3, 4]), causal_mask(7))
        np.testing.assert_array_equal(mask[3], [0, 0, 0, 1, 0, 0, 0])
        encoder = model(encoding="sinusoidal", causal=True)
        first, second = np.array([[3, 1, 4]]), np.array([[1, 5, 9, 2]])
        packed = np.concatenate([first, second], axis=1)
        out = encoder(packed, mask=document_mask([3, 4]), positions=packed_position_ids([3, 4]))
        np.testing.assert_allclose(out[:, 3:], encoder(second), atol=1e-10)

    def test_a_negative_position_is_no_index_from_the_end(self):
        """turboderp-org/exllamav2#606 (legal for RoPE), texar-pytorch#77 (silent wrap)."""
        table = sinusoidal_encoding(10, 6)
        assert not np.allclose(sinusoidal_encoding([-5], 6)[0], table[-5])
        with pytest.raises(IndexError, match="got -5"):
            LearnedEncoding(10, 6, rng=RNG)([-5])
        x = RNG.normal(size=(1, 4))
        np.testing.assert_allclose(apply_rotary(apply_rotary(x, [5]), [-5]), x)

    @pytest.mark.parametrize("encoding", ["sinusoidal", "learned", "rotary", "t5", "alibi", "shaw"])
    def test_cached_decoding_equals_the_full_pass(self, encoding):
        """lucidrains/x-transformers#219, skyzh/tiny-llm#46: the newest query at position 0."""
        encoder = model(encoding=encoding, causal=True)
        tokens = np.array([[3, 1, 4, 1, 5]])
        cache = encoder.new_cache()
        steps = [encoder(tokens[:, n : n + 1], cache=cache) for n in range(5)]
        np.testing.assert_allclose(np.concatenate(steps, axis=1), encoder(tokens), atol=1e-10)

    def test_positions_are_counted_not_copied_from_token_ids(self):
        """graykode/nlp-tutorial#73: [1, 2, 3, 4, 0] and [5, 1, 2, 3, 4]."""
        ids = position_ids([[True] * 5, [True] * 5])
        np.testing.assert_array_equal(ids, [[0, 1, 2, 3, 4]] * 2)

    def test_a_special_token_put_in_front_gets_the_first_position(self):
        """labmlai/annotated_deep_learning_paper_implementations#221: concatenate, then add."""
        patches = np.zeros((2, 3, 4))
        sequence = np.concatenate([np.zeros((2, 1, 4)), patches], axis=1)
        summed = add_positions(sequence, sinusoidal_encoding(4, 4))
        np.testing.assert_array_equal(summed[0], sinusoidal_encoding(4, 4))
        with pytest.raises(ValueError, match="It has rows for 3 positions, the sequence has 4"):
            add_positions(sequence, sinusoidal_encoding(3, 4))

    def test_a_decoder_is_trained_on_the_next_token(self):
        """Project-MONAI/GenerativeModels#314: the target was not shifted."""
        batch = Reverse(length=6).batch(np.random.default_rng(0), 4)
        np.testing.assert_array_equal(batch.targets, batch.inputs["tokens"][:, ::-1])
        transformer = Transformer(11, 11, 12, 3, 20, 1, rng=np.random.default_rng(2))
        source, target = np.array([[3, 1, 4]]), np.array([[1, 7, 8, 9]])
        changed = target.copy()
        changed[0, 3] = 5
        before, after = transformer(source, target), transformer(source, changed)
        np.testing.assert_allclose(before[:, :3], after[:, :3], atol=1e-12)

    def test_true_means_may_attend_and_integers_do_not_say(self):
        """rasbt/LLMs-from-scratch#1061, pytorch/pytorch#170415: the future, and only the future."""
        x = np.zeros((3, 2))
        _, weights = scaled_dot_product_attention(x, x, x, mask=causal_mask(3))
        np.testing.assert_allclose(weights, [[1, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]])
        blocked = np.triu(np.ones((3, 3), int), 1)
        with pytest.raises(TypeError, match="True = may attend"):
            scaled_dot_product_attention(x, x, x, mask=blocked)

    def test_a_row_without_a_key_is_zero_and_its_neighbours_stay_right(self):
        """pytorch/pytorch#41508, #103963: softmax of −inf everywhere is 0/0."""
        x = RNG.normal(size=(1, 1, 4, 3))
        left_padded = np.array([False, False, True, True])[None, None, None, :]
        mask = combine(causal_mask(4), left_padded)
        output, _ = scaled_dot_product_attention(x, x, x, mask=mask)
        assert not output[0, 0, :2].any()
        alone, _ = scaled_dot_product_attention(
            x[..., 2:, :], x[..., 2:, :], x[..., 2:, :], mask=causal_mask(2)
        )
        np.testing.assert_allclose(output[..., 2:, :], alone)

    @pytest.mark.parametrize("dtype", [np.float16, np.float32])
    def test_hiding_needs_no_large_negative_number(self, dtype):
        """facebookresearch/fairseq#3575: −1e8 is −inf in float16, and two of −6e4 are too."""
        x = np.zeros((3, 2), dtype)
        output, weights = scaled_dot_product_attention(x, x, x, mask=causal_mask(3))
        assert weights.dtype == output.dtype == dtype
        assert np.isfinite(weights).all()
        assert weights[0, 1] == 0

    def test_queries_are_the_last_positions(self):
        """Dao-AILab/flash-attention#517, pytorch/pytorch#108108: top left hides the past."""
        np.testing.assert_array_equal(causal_mask(2, 5), [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])
        np.testing.assert_array_equal(causal_mask(5, 2).any(axis=1), [0, 0, 0, 1, 1])
        np.testing.assert_array_equal(alibi_bias(1, 2, 5)[0] == -np.inf, ~causal_mask(2, 5))
        np.testing.assert_array_equal(clipped_relative_positions(2, 5, 9)[:, -1], [1, 0])

    def test_a_bias_of_minus_infinity_hides_without_nan(self):
        """pytorch/tutorials#2250: 0 · −inf is NaN; np.where is not."""
        x = RNG.normal(size=(3, 2))
        hidden = np.where(causal_mask(3), 0.0, -np.inf)
        np.testing.assert_allclose(
            scaled_dot_product_attention(x, x, x, bias=hidden)[0],
            scaled_dot_product_attention(x, x, x, mask=causal_mask(3))[0],
        )
        with np.errstate(invalid="ignore"):
            multiplied = np.triu(np.ones((3, 3)), 1) * -np.inf
        with pytest.raises(ValueError, match="bias must not hold NaN"):
            scaled_dot_product_attention(x, x, x, bias=multiplied)

    def test_angles_are_computed_before_the_dtype_is_lowered(self):
        """huggingface/transformers#29285: bfloat16 holds 513 of the first 1024 positions."""
        assert np.unique(bfloat16(np.arange(1024))).size == 513
        assert bfloat16(257) == 256
        rows = sinusoidal_encoding([256, 257], 8, dtype=np.float16)
        assert not np.array_equal(rows[0], rows[1])
        x = RNG.normal(size=(2, 8)).astype(np.float16)
        exact = apply_rotary(x.astype(np.float64), [4094, 4095])
        np.testing.assert_allclose(apply_rotary(x, [4094, 4095]), exact, atol=4e-3)

    def test_dynamic_ntk_keeps_short_texts_and_one_base_for_a_whole_text(self):
        """huggingface/transformers#25104: cached keys turned with an older base."""
        scaling, head_dim = DynamicNTKScaling(2.0, original_length=2048), 128

        def base(length):
            slowest = rotary_frequencies(head_dim, scaling=scaling, length=length)[-1]
            return slowest ** (-head_dim / (head_dim - 2))

        assert base(2048) == pytest.approx(10000)
        assert base(4096) == pytest.approx(30527.74, abs=0.01)
        assert base(4097) == pytest.approx(30537.83, abs=0.01)
        x = RNG.normal(size=(4097, 4))
        last = apply_rotary(x, np.arange(4097), scaling=scaling)[10]
        alone = apply_rotary(x[10:11], [10], scaling=scaling)[0]
        assert not np.allclose(last, alone), "the whole text decides: keep keys unrotated"

    def test_a_table_takes_the_dtype_of_what_it_is_added_to(self):
        """Kyubyong/transformer#19: a float64 table turns a float32 model into float64."""
        sums = add_positions(np.zeros((2, 3, 4), np.float32), sinusoidal_encoding(3, 4))
        assert sums.dtype == np.float32
        with pytest.raises(TypeError, match="embeddings must be floating point"):
            add_positions(np.zeros((2, 3, 4), int), sinusoidal_encoding(3, 4))

    def test_a_fixed_table_is_no_parameter(self):
        """huggingface/transformers#6882, henry9zhr/QANet-pytorch#3: stored, and trained."""
        names = set(model(encoding="sinusoidal").parameters())
        assert names == set(model(encoding="none").parameters())
        assert set(model(encoding="learned").parameters()) > names

    def test_a_longer_fixed_table_begins_with_the_shorter_one(self):
        """continue-revolution/sd-webui-animatediff#180: (1, 32, 640) against (1, 24, 640)."""
        np.testing.assert_array_equal(sinusoidal_encoding(32, 16)[:24], sinusoidal_encoding(24, 16))


class TestFalseAlarms:
    """It looked wrong and was right, within the stated conditions."""

    def test_sines_first_and_interleaved_are_one_encoding(self):
        """tensorflow/tensor2tensor#391: a permutation of columns."""
        table, split = sinusoidal_encoding(6, 8), sinusoidal_encoding(6, 8, layout="split")
        np.testing.assert_array_equal(split, table[:, [0, 2, 4, 6, 1, 3, 5, 7]])
        np.testing.assert_allclose(split @ split.T, table @ table.T)

    def test_positions_1_and_10001_differ(self):
        """huggingface/transformers#1791: the base is not a period."""
        others = sinusoidal_encoding(20001, 512)
        distance = np.linalg.norm(others[52:] - others[1], axis=1)
        assert distance.min() == pytest.approx(15.82, abs=0.005)
        assert distance[10001 - 52] == pytest.approx(23.34, abs=0.005)

    def test_exp_of_a_logarithm_is_the_power(self):
        """hkproj/pytorch-transformer#2, harvardnlp/annotated-transformer#20."""
        by_exp = np.exp(np.arange(0, 6, 2) * -np.log(10000.0) / 6)
        np.testing.assert_allclose(by_exp, frequencies(6))
        assert sinusoidal_encoding([1], 4)[0, 2] == pytest.approx(0.009999833)

    def test_a_table_without_a_batch_axis_serves_every_sentence(self):
        """karpathy/nanoGPT#275: trailing axes are aligned."""
        table = sinusoidal_encoding(4, 6)
        sums = add_positions(np.zeros((2, 4, 6)), table)
        np.testing.assert_array_equal(sums, np.stack([table, table]))

    def test_a_padding_mask_is_neither_triangular_nor_over_queries(self):
        """kzl/decision-transformer#30: rows of padding queries are unused, not hidden."""
        keep = padding_mask([3], 4)[:, None, None, :]
        x = RNG.normal(size=(1, 1, 4, 2))
        _, weights = scaled_dot_product_attention(x, x, x, mask=keep)
        np.testing.assert_array_equal(weights[0, 0] > 0, np.tile([1, 1, 1, 0], (4, 1)))

    def test_half_pairs_are_permuted_interleaved_pairs(self):
        """huggingface/transformers#25199: wrong only beside weights of the other kind."""
        x, order = np.array([[1.0, 2.0, 3.0, 4.0]]), [0, 2, 1, 3]
        interleaved = apply_rotary(x, [1])
        half = apply_rotary(x, [1], pairing="half")
        np.testing.assert_allclose(half[0], [-1.984111, 1.959901, 2.462378, 4.0198], 1e-5)
        np.testing.assert_allclose(interleaved[0], [-1.14264, 1.922076, 2.959851, 4.0298], 1e-5)
        np.testing.assert_allclose(
            apply_rotary(x[:, order], [1], pairing="half"), interleaved[:, order]
        )

    def test_one_row_of_alibi_serves_all_queries_under_a_causal_mask_only(self):
        """mosaicml/llm-foundry#186: a constant per row, which softmax does not see."""
        scores, mask = RNG.normal(size=(4, 4)), causal_mask(4)
        full = alibi_bias(8, 4, 4, causal=False)[0]  # the steepest head
        one_row = np.tile(full[-1], (4, 1))
        hide = np.where(mask, 0, -np.inf)
        np.testing.assert_allclose(softmax(scores + full + hide), softmax(scores + one_row + hide))
        assert np.abs(softmax(scores + full) - softmax(scores + one_row)).max() > 0.02

    def test_rope_scores_do_not_change_when_everything_moves(self):
        """The document reset changes nothing for RoPE in exact arithmetic, and much in bfloat16."""
        q, k = RNG.normal(size=(2, 64))

        def score(start):
            return apply_rotary(q[None], [start + 7])[0] @ apply_rotary(k[None], [start])[0]

        assert score(1000) == pytest.approx(score(0), abs=1e-11)


class TestConventions:
    """Several rules share a name; here is which one posenc follows."""

    def test_t5_buckets_put_the_future_in_the_upper_half(self):
        """lucidrains/x-transformers#10: relative position is key − query."""
        relative = [-200, -128, -64, -16, -8, -7, -1, 0, 1, 7, 8, 64, 128]
        both = [15, 15, 14, 10, 8, 7, 1, 0, 17, 23, 24, 30, 31]
        past = [31, 31, 26, 16, 8, 7, 1, 0, 0, 0, 0, 0, 0]
        np.testing.assert_array_equal(t5_buckets(relative), both)
        np.testing.assert_array_equal(t5_buckets(relative, bidirectional=False), past)
        table = np.arange(32.0)[:, None]
        assert t5_bias(table, 1, 3)[0].tolist() == [[2.0, 1.0, 0.0]]

    def test_two_axes_are_two_encodings_and_the_names_say_which(self):
        """facebookresearch/mae#18: the first half of MAE's columns encodes x, named h."""
        height, width, d_model = 2, 3, 8
        y, x = np.divmod(np.arange(height * width), width)
        np.testing.assert_array_equal(x, [0, 1, 2, 0, 1, 2])
        grid = np.concatenate(
            [sinusoidal_encoding(axis, d_model // 2, layout="split") for axis in (x, y)], axis=1
        )
        assert grid.shape == (6, 8)
        assert np.ptp(grid[:3, 4:], axis=0).max() == 0, "one row of patches, one y"
        assert len(np.unique(grid.round(9), axis=0)) == 6

    def test_detr_counts_from_one_and_scales_to_a_turn(self):
        """facebookresearch/detr: fractional positions are legal, so its rule fits in a line."""
        real = np.array([[True, True, True, False]])
        counted = np.cumsum(real, axis=1)
        scaled = counted / counted[:, -1:] * 2 * np.pi
        np.testing.assert_allclose(scaled, [[2.0944, 4.1888, 6.2832, 6.2832]], 1e-4)
        assert sinusoidal_encoding(scaled, 6).shape == (1, 4, 6)

    def test_a_tagger_without_an_encoding_is_equivariant(self):
        """The test that a dropped encoding fails: reorder the words, and the answers follow."""
        tagger = Tagger(11, 12, 3, 20, 2, rng=np.random.default_rng(3), encoding="none")
        tokens, order = np.array([[3, 1, 4, 1, 5]]), [4, 2, 0, 1, 3]
        np.testing.assert_allclose(tagger(tokens[:, order]), tagger(tokens)[:, order], atol=1e-12)
