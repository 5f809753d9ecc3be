"""A position table that was trained in earnest, to look at beside the small ones of the course."""

from importlib import resources

import numpy as np
from numpy.typing import NDArray


def released_table() -> NDArray[np.float64]:
    """Read the learned position embeddings of a released sentence encoder, all-MiniLM-L6-v2.

    Returns
    -------
    ndarray, shape (512, 384), float64
        One row a position, 384 = d_model, as the model adds them to its word embeddings; rounded to
        half precision when they were taken out of the model, so to about three digits.

    Notes
    -----
    The model is distilled from a larger one of the BERT family (Wang et al. 2020, *MiniLM*) and
    was trained further, on texts cut at 128 tokens, to turn sentences into vectors (Reimers and
    Gurevych 2019). Its weights are under the Apache License 2.0; ``data/README.md`` beside this
    module says where the file comes from and how to make it again.

    Examples
    --------
    >>> table = released_table()
    >>> table.shape
    (512, 384)
    >>> float(np.linalg.norm(table[1]).round(2))
    0.49
    """
    with resources.files("posenc").joinpath("data/minilm_positions.npy").open("rb") as stored:
        return np.load(stored).astype(np.float64)
