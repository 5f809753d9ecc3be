"""Outcomes as they come out of the student's kernel: untrusted JSON, turned into checked data.

No object of the student's survives the way: what is not a number, a string, an array of numbers
or a nest of these arrives as `Unknown`, which equals nothing.
"""

import math
import sys
from dataclasses import dataclass
from typing import Any

from posenc_grader.sandbox import IN_KERNEL

sys.path.insert(0, str(IN_KERNEL))
import posenc_probe

MIME = posenc_probe.MIME
DTYPES = {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"}


@dataclass(frozen=True, eq=False)
class Unknown:
    """A value of a kind that no task asks for."""

    kind: str

    def __repr__(self) -> str:
        return f"an object of type {self.kind}"


@dataclass(frozen=True)
class Raised:
    """What the student's code raised: the names of the class and its bases, and the message."""

    lineage: tuple[str, ...]
    text: str


class NotDefined:
    """The name that the task asks for does not exist in the student's notebook."""


def encode(value: Any) -> Any:
    """Turn the inputs of a task into JSON for the kernel."""
    return posenc_probe.encode(value)


def outcomes(outputs: list[dict[str, Any]], count: int) -> list[Any]:
    """Read the outcomes of `count` cases from a cell's outputs; None where one is missing."""
    found: list[Any] = [None] * count
    for output in outputs:
        data = output.get("data", {}).get(MIME) if output["output_type"] == "display_data" else None
        if isinstance(data, dict) and data.get("case") in range(count):
            found[data["case"]] = _outcome(data)
    return found


def _outcome(data: dict[str, Any]) -> Any:
    if data.get("missing") is True:
        return NotDefined()
    if isinstance(data.get("error"), list) and data["error"]:
        return Raised(tuple(str(name)[:80] for name in data["error"]), str(data.get("text"))[:300])
    try:
        return _value(data["value"])
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return Unknown("unreadable")


def _value(data: dict[str, Any]) -> Any:
    if data.keys() == {"plain"} and (
        data["plain"] is None or isinstance(data["plain"], bool | str)
    ):
        return data["plain"]
    if data.keys() == {"list"}:
        return [_value(item) for item in data["list"]]
    if data.keys() == {"tuple"}:
        return tuple(_value(item) for item in data["tuple"])
    if data.keys() == {"dict"}:
        return {str(key): _value(item) for key, item in data["dict"].items()}
    if data.keys() == {"array", "dtype", "shape"}:
        if data["dtype"] not in DTYPES or not all(type(n) is int for n in data["shape"]):
            raise ValueError("not an array of numbers")
        if min(data["shape"], default=0) < 0 or math.prod(data["shape"]) > len(data["array"]):
            raise ValueError("a shape without the data for it")
        return posenc_probe.decode(data)
    return Unknown(str(data["other"])[:80])
