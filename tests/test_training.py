"""The trainer: loss, Adam, reproducibility, and the facts that the chapters rest on."""

import numpy as np
import pytest

from posenc.tasks import AfterMarker, Batch, DogBitesMan, KthToken, Reverse, WhichCameFirst
from posenc.training import Adam, Result, accuracy, cross_entropy, fit, train
from posenc.transformer import Tagger, Transformer

# --- loss -----------------------------------------------------------------------------------------


def test_cross_entropy_counts_where_the_mask_is_true():
    rng = np.random.default_rng(0)
    scores, targets = rng.standard_normal((2, 5, 7)), rng.integers(7, size=(2, 5))
    mask = rng.random((2, 5)) < 0.5
    loss, grad = cross_entropy(scores, targets, mask)
    losses = [
        -np.log(np.exp(scores[b, t, targets[b, t]]) / np.exp(scores[b, t]).sum())
        for b, t in np.argwhere(mask)
    ]
    assert abs(loss - np.mean(losses)) < 1e-12
    assert (grad[~mask] == 0).all()
    np.testing.assert_allclose(grad.sum(axis=-1), 0, atol=1e-12)


def test_cross_entropy_of_a_uniform_guess_is_the_log_of_the_choices():
    loss, _ = cross_entropy(np.zeros((2, 5, 7)), np.zeros((2, 5), int))
    assert abs(loss - np.log(7)) < 1e-12


def test_cross_entropy_stays_finite_for_enormous_scores():
    loss, grad = cross_entropy([[1e4, -1e4], [-1e4, 1e4]], [0, 0])
    assert np.isfinite(loss)
    assert loss > 300
    np.testing.assert_allclose(grad, [[0, 0], [-0.5, 0.5]])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            (np.zeros((2, 5, 7)), np.zeros((2, 4), int)),
            ValueError,
            r"scores must have shape \(2, 4",
        ),
        ((np.zeros((2, 7)), [0, 7]), ValueError, "targets must be below V = 7, got 7"),
        ((np.zeros((2, 7)), [0, -1]), ValueError, "targets must be at least 0, got -1"),
        ((np.zeros((2, 7)), [0.0, 1.0]), TypeError, "targets must be an array of integers"),
        ((np.zeros((2, 7)), [0, 1], [1, 0]), TypeError, "mask must be boolean"),
        ((np.zeros((2, 7)), [0, 1], [False, False]), ValueError, "mask .* True somewhere"),
        ((np.zeros((2, 7)), [0, 1], [True]), ValueError, r"mask must have the shape of targets"),
        ((np.full((2, 7), np.nan), [0, 1]), ValueError, "scores must be finite"),
    ],
)
def test_cross_entropy_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        cross_entropy(*arguments)


# --- Adam -----------------------------------------------------------------------------------------


def test_adam_is_algorithm_1_of_the_paper():
    rng = np.random.default_rng(0)
    weights = {"a": rng.standard_normal((2, 3)), "b": rng.standard_normal(4)}
    theta = {name: array.copy() for name, array in weights.items()}
    m, v = dict.fromkeys(weights, 0.0), dict.fromkeys(weights, 0.0)
    adam = Adam(weights, 0.1, beta1=0.8, beta2=0.95, eps=1e-3)
    for t in range(1, 6):
        gradients = {name: rng.standard_normal(array.shape) for name, array in weights.items()}
        adam.step(gradients)
        for name, g in gradients.items():
            m[name] = 0.8 * m[name] + (1 - 0.8) * g
            v[name] = 0.95 * v[name] + (1 - 0.95) * g**2
            m_hat, v_hat = m[name] / (1 - 0.8**t), v[name] / (1 - 0.95**t)
            theta[name] = theta[name] - 0.1 * m_hat / (np.sqrt(v_hat) + 1e-3)
    for name, array in weights.items():
        np.testing.assert_allclose(array, theta[name], rtol=1e-12)


def test_adam_writes_into_the_arrays_of_the_model():
    model = Tagger(5, 8, 2, 8, 1, rng=np.random.default_rng(0))
    table = model.encoder.embedding.table
    before = table.copy()
    adam = Adam(model.parameters())
    adam.step({name: np.ones_like(array) for name, array in model.parameters().items()})
    np.testing.assert_allclose(table, before - 3e-3)


def test_adam_refuses_gradients_of_other_parameters():
    with pytest.raises(ValueError, match=r"odd ones \['a', 'b'\]"):
        Adam({"a": np.ones(1)}).step({"b": np.ones(1)})
    with pytest.raises(TypeError, match="learning_rate must be a real number"):
        Adam({"a": np.ones(1)}, "fast")
    with pytest.raises(ValueError, match="beta2 must be below 1, got 1"):
        Adam({"a": np.ones(1)}, beta2=1)


# --- fit and train --------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["learned", "t5", "shaw"])
def test_training_twice_gives_the_same_bits(encoding):
    first, second = (train(Reverse(length=6), encoding=encoding, steps=5) for _ in range(2))
    assert first.losses == second.losses
    for name, array in first.model.parameters().items():
        np.testing.assert_array_equal(array, second.model.parameters()[name])
    other = train(Reverse(length=6), encoding=encoding, steps=5, seed=1)
    assert other.losses != first.losses


def test_everything_is_float64():
    result = train(Reverse(length=6), encoding="learned", steps=2)
    assert {a.dtype for a in result.model.parameters().values()} == {np.dtype(np.float64)}


def test_the_sinusoid_is_not_trained():
    assert not [n for n in train(Reverse(length=6), steps=2).model.parameters() if "encoding" in n]


def test_the_learning_rate_rises_and_falls():
    rates = []

    class Still:
        weight = np.zeros(3)

        def parameters(self):
            return {"weight": self.weight}

        def forward(self, tokens):
            return np.zeros((*tokens.shape, 3)), None

        def backward(self, tape, grad):
            rates.append(self.weight.copy())
            return {"weight": np.ones(3)}

    tokens = np.zeros((1, 2), int)
    batch = Batch({"tokens": tokens}, tokens, np.ones((1, 2), bool))
    losses = fit(Still(), lambda: batch, steps=10, learning_rate=1.0, warm_up=4)
    assert len(losses) == 10
    moved = -np.diff([w[0] for w in rates])  # a constant gradient moves Adam by the rate
    expected = [min((step + 1) / 5, 1 - step / 10) for step in range(9)]
    np.testing.assert_allclose(moved, expected, atol=1e-6)


def test_a_result_says_what_was_measured():
    result = train(
        WhichCameFirst(length=8), encoding="learned", steps=3, seed=2, lengths=[5, 8],
        test_lengths=[8, 12],
    )  # fmt: skip
    assert isinstance(result, Result)
    assert (result.steps, result.seed, len(result.losses)) == (3, 2, 3)
    assert result.accuracy.keys() == result.ceiling.keys() == {8, 12}
    assert all(0 <= share <= 1 for share in result.accuracy.values())
    assert result.ceiling == {8: 0.5, 12: 0.5}
    assert result.ceiling is result.ceiling  # worked out once
    assert len(result.model.encoder.encoding.lookup.table) == 12  # rows for the longest test
    assert "losses" not in repr(result)
    assert "cpu_seconds" not in repr(result)


def test_accuracy_counts_where_the_mask_is_true():
    class Echo:
        def forward(self, tokens):
            return np.eye(5)[tokens], None

    tokens = np.array([[0, 1, 2], [3, 4, 0]])
    targets = np.array([[0, 1, 0], [3, 0, 0]])
    mask = np.array([[True, False, True], [True, True, False]])
    assert accuracy(Echo(), Batch({"tokens": tokens}, targets, mask)) == 0.5
    with pytest.raises(ValueError, match=r"batch\.mask must be True somewhere"):
        accuracy(Echo(), Batch({"tokens": tokens}, targets, np.zeros((2, 3), bool)))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"steps": 0}, ValueError, "steps must be at least 1"),
        ({"seed": -1}, ValueError, "seed must be at least 0"),
        ({"lengths": []}, ValueError, "lengths must hold at least one length"),
        ({"lengths": [0]}, ValueError, "lengths must be at least 1"),
        ({"test_lengths": 8}, ValueError, "test_lengths must have 1 axes"),
        ({"encoding": "rope"}, ValueError, "encoding must be one of"),
        ({"learning_rate": -1}, ValueError, "learning_rate must be a finite number"),
        ({"n_layers": 0}, ValueError, "n_layers must be at least 1"),
    ],
)
def test_train_refuses(options, error, message):
    with pytest.raises(error, match=message):
        train(Reverse(), **options)


# --- what the chapters rest on, on the smallest scale that shows it -------------------------------

QUICK = {"steps": 150, "n_test": 400}


@pytest.mark.parametrize("encoding", ["sinusoidal", "learned"])
def test_absolute_encodings_reverse(encoding):
    assert train(Reverse(length=8), encoding=encoding, **QUICK).accuracy[8] > 0.98


@pytest.mark.parametrize("encoding", ["rotary", "t5", "alibi"])
def test_relative_encodings_do_not_reverse(encoding):
    assert train(Reverse(length=8), encoding=encoding, **QUICK).accuracy[8] < 0.8


@pytest.mark.parametrize("task", [Reverse(length=8), DogBitesMan(length=6), KthToken(length=8)])
def test_without_encoding_nobody_passes_the_ceiling(task):
    result = train(task, encoding="none", **QUICK)
    assert abs(result.accuracy[task.length] - result.ceiling[task.length]) < 0.08


def test_a_causal_mask_alone_tells_which_came_first():
    result = train(WhichCameFirst(length=8), encoding="none", causal=True, **QUICK)
    assert result.accuracy[8] > 0.98


def test_late_is_too_late_for_two_steps_but_not_for_one():
    options = {"steps": 400, "where": 1}
    task = AfterMarker(length=6)
    late = train(task, **options).accuracy[6]
    early = train(task, **options | {"where": "input"}).accuracy[6]
    assert early > 0.95
    assert late < 0.75
    assert train(Reverse(length=8), where=1, **QUICK).accuracy[8] > 0.9


def test_an_encoder_and_a_decoder_learn_to_copy_backwards():
    rng = np.random.default_rng(0)
    model = Transformer(6, 7, 16, 2, 32, 1, rng=rng)

    def draw():
        source = rng.integers(6, size=(32, 4))
        answer = source[:, ::-1]
        start = np.full((32, 1), 6)
        shown = np.concatenate([start, answer[:, :-1]], axis=1)  # the answer, one place later
        inputs = {"source": source, "target": shown}
        return Batch(inputs, answer, np.ones(answer.shape, bool))

    losses = fit(model, draw, steps=150, learning_rate=1e-2)
    assert losses[0] > 1.5
    batch = draw()
    written = model.generate(batch.inputs["source"], start=6, length=4)
    assert (written == batch.targets).mean() > 0.95
