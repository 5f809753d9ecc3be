"""The toy assignment's tasks: every kind of aspect, in as few lines as possible."""

import numpy as np

from posenc.masks import causal_mask
from posenc.sinusoidal import frequencies
from posenc_grader.tasks import Aspect, Mistake, Task

TASKS = [
    Task(
        cell="toy-frequencies-check",
        answer="frequencies",
        title="Frequencies",
        objective="compute one frequency a pair",
        section="chapters/02-the-formula.ipynb#Toy",
        exercise="ex-toy",
        aspects=[
            Aspect(
                "even widths",
                2,
                frequencies,
                cases=lambda rng: [(2 * int(n),) for n in rng.integers(2, 9, 3)],
                mistakes=[
                    Mistake(
                        lambda d_model: 10000.0 ** (-2 * np.arange(0, d_model, 2) / d_model),
                        "The exponent is twice too large: the step of 2 already counts columns.",
                    )
                ],
            ),
            Aspect(
                "odd widths", 1, frequencies, cases=lambda rng: [(2 * int(rng.integers(2, 9)) + 1,)]
            ),
            Aspect(
                "another base", 1, frequencies, cases=lambda rng: [(6, float(rng.integers(2, 99)))]
            ),
        ],
    ),
    Task(
        cell="toy-mask-check",
        answer="causal_mask",
        title="Mask",
        objective="build a causal mask",
        section="chapters/04-encoding-vs-masking.ipynb#Toy",
        exercise="ex-toy",
        aspects=[
            Aspect(
                "who sees whom",
                2,
                causal_mask,
                cases=lambda rng: [(int(rng.integers(4, 12)),), (1,)],
                mistakes=[
                    Mistake(
                        lambda length: ~np.tri(length, dtype=bool),
                        "The mask is upside down: True means may attend.",
                    )
                ],
            )
        ],
    ),
    Task(
        cell="toy-why",
        answer="",
        title="Mask or encoding",
        objective="tell a mask from an encoding",
        section="chapters/04-encoding-vs-masking.ipynb#Toy",
        exercise="ex-toy",
        written=3,
    ),
]
