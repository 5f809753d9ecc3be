"""Checks at the border: every public function looks at its arguments here before any work.

Each check returns the argument in the form the caller computes with, or raises an error that names
the argument, shows what it was and says what was expected: `TypeError` for the wrong kind of
thing, `ValueError` for a wrong value or shape.
"""

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray


def integer(name: str, value: object, *, minimum: int | None = None) -> int:
    """Return `value` as a Python int; a float, a bool or a value below `minimum` is refused."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r} ({type(value).__name__})")
    if minimum is not None and value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    return int(value)


def boolean(name: str, value: object) -> bool:
    """Return `value` as a Python bool; 0, 1 and "no" are refused."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r} ({type(value).__name__})")
    return bool(value)


def real(
    name: str, value: object, *, minimum: float | None = None, above: float | None = None
) -> float:
    """Return `value` as a finite Python float, at least `minimum` or greater than `above`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {value!r} ({type(value).__name__})")
    number = float(value)
    too_low = (minimum is not None and number < minimum) or (above is not None and number <= above)
    if not np.isfinite(number) or too_low:
        bound = "" if minimum is None else f" of at least {minimum:g}"
        bound = bound if above is None else f" greater than {above:g}"
        raise ValueError(f"{name} must be a finite number{bound}, got {value}")
    return number


def one_of(name: str, value: object, options: Sequence[str]) -> str:
    """Return `value` if it is one of the named `options`."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {value!r} ({type(value).__name__})")
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")
    return value


def generator(name: str, value: object) -> np.random.Generator:
    """Return `value` if it is a NumPy random generator: randomness is always passed in by hand."""
    if not isinstance(value, np.random.Generator):
        raise TypeError(
            f"{name} must be a numpy.random.Generator such as np.random.default_rng(0), "
            f"got {value!r} ({type(value).__name__})"
        )
    return value


def float_dtype(name: str, value: DTypeLike) -> np.dtype[Any]:
    """Return `value` as a floating-point dtype; an integer table would truncate every sine to 0."""
    dtype = np.dtype(value)
    if not np.issubdtype(dtype, np.floating):
        raise TypeError(f"{name} must be a floating-point dtype, got {dtype}")
    return dtype


def _array(name: str, value: ArrayLike, wanted: str) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except ValueError as error:  # rows of unequal length
        raise ValueError(f"{name} must be {wanted}, got a ragged sequence") from error


def float_array(name: str, value: ArrayLike, *, finite: bool = True) -> NDArray[np.floating[Any]]:
    """Return `value` as an array of floats: a float dtype is kept, integers become float64."""
    array = _array(name, value, "an array of real numbers")
    if np.issubdtype(array.dtype, np.integer):
        if array.size and max(abs(int(array.min())), abs(int(array.max()))) > 2**53:
            raise ValueError(f"{name} must be exact in float64, got integers beyond 2**53")
        array = array.astype(np.float64)
    if not np.issubdtype(array.dtype, np.floating):
        raise TypeError(f"{name} must be an array of real numbers, got dtype {array.dtype}")
    if finite and not np.isfinite(array).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite, got {array[index]} at index {index}")
    return array


def integer_array(
    name: str, value: ArrayLike, *, ndim: int | None = None, minimum: int | None = None
) -> NDArray[np.int64]:
    """Return `value` as an int64 array, optionally of `ndim` axes with no entry below `minimum`."""
    array = _array(name, value, "an array of integers")
    if array.size == 0 and not isinstance(value, np.ndarray):
        array = array.astype(np.int64)  # NumPy reads an empty list as float
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"{name} must be an array of integers, got dtype {array.dtype}")
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} axes, got shape {array.shape}")
    if minimum is not None and array.size and array.min() < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {array.min()}")
    return array.astype(np.int64)


def boolean_array(name: str, value: ArrayLike) -> NDArray[np.bool_]:
    """Return `value` as a boolean array; 0/1 integers and additive floats are refused."""
    array = _array(name, value, "a boolean array")
    if array.dtype != np.bool_:
        raise TypeError(
            f"{name} must be boolean with True = may attend (or: is a real token), got dtype "
            f"{array.dtype}. Pass `{name}.astype(bool)` for a 0/1 array in which 1 means keep, "
            f"`{name} == 0` for an additive array of 0 and -inf; torch's key_padding_mask and "
            f"MultiheadAttention use True = blocked, so pass `~{name}` for those"
        )
    return array


def with_axes(name: str, array: NDArray[Any], minimum: int, axes: str) -> None:
    """Refuse an array of fewer than `minimum` axes; `axes` is how its shape should read."""
    if array.ndim < minimum:
        raise ValueError(f"{name} must have shape {axes}, got {array.shape}")
