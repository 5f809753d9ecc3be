"""The table of a released model: it is what its description says."""

import hashlib
from importlib import resources

import numpy as np
import pytest

from posenc.released import released_table

STORED = "data/minilm_positions.npy"


@pytest.fixture(scope="module")
def table():
    return released_table()


def test_it_is_the_file_that_the_script_writes():
    stored = resources.files("posenc").joinpath(STORED).read_bytes()
    digest = hashlib.sha256(stored).hexdigest()
    assert digest == "04c5ac78c007a66596a01f665c9c42fbeb3240241ee33eec3ee711b9eaa59757"


def test_it_is_a_table_of_512_rows_in_double_precision(table):
    assert table.shape == (512, 384)
    assert table.dtype == np.float64
    assert np.isfinite(table).all()
    assert len(np.unique(table, axis=0)) == 512


def test_a_caller_can_change_it_without_changing_it_for_others(table):
    mine = released_table()
    mine[:] = 0
    assert released_table().any()
    np.testing.assert_array_equal(released_table(), table)


def test_its_licence_comes_with_it():
    assert "Apache License" in resources.files("posenc").joinpath("data/LICENSE").read_text()
