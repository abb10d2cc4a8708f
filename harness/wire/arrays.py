"""Which arrays may cross the wire, and how one is rebuilt from bytes a stranger sent.

Nothing here can run code: element types are numbers, booleans, text, bytes and times alone
(never ``object``, never records), and every size is checked before memory is touched.
"""

from __future__ import annotations

import functools
import math
import re
import sys
from typing import Any

import numpy as np

from harness.wire.errors import ProtocolError

_KINDS = "biufcSU"  # and times: "mM"
_DTYPE = re.compile(r"[<>=|]?[A-Za-z]+\d*(\[\w+\])?")
_MAX_NDIM = 32
_LAST_CODE_POINT = 0x10FFFF


def check_type(dtype: np.dtype[Any]) -> None:
    """ProtocolError where elements of this type cannot cross."""
    if not _crosses(dtype):
        raise ProtocolError(
            "send an array",
            f"element type {dtype} cannot cross the wire",
            "send numbers, booleans, text, bytes or times with a unit",
        )


def _crosses(dtype: np.dtype[Any]) -> bool:
    if dtype.kind in "mM":  # one without a unit, or of no length, cannot even be printed
        unit, count = np.datetime_data(dtype)[:2]
        return unit != "generic" and count > 0
    return dtype.kind in _KINDS and dtype.itemsize > 0


def plain(scalar: np.generic) -> bool | int | float | str:
    """A numpy scalar as the JSON value it stands for."""
    for kind, convert in ((np.bool_, bool), (np.integer, int), (np.floating, float), (str, str)):
        if isinstance(scalar, kind):
            return convert(scalar)
    raise TypeError(f"a scalar of type {type(scalar).__name__}")


def raw_bytes(array: np.ndarray) -> memoryview:
    """The bytes of a C-ordered array, not copied."""
    try:
        return array.data.cast("B")
    except (TypeError, ValueError):  # text, times, foreign byte orders, and arrays of nothing
        return array.reshape(-1).view(np.uint8).data


def parse_spec(dtype: Any, shape: Any) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """``(dtype, shape, bytes)`` of a description off the wire.

    What is no description is not shown: it may be an array in memory that nobody has filled yet.
    """
    whole = isinstance(shape, list) and len(shape) <= _MAX_NDIM
    if not whole or not all(type(n) is int and 0 <= n <= sys.maxsize for n in shape):
        raise malformed("the shape of an array")
    if not isinstance(dtype, str):
        raise malformed("an array's element type, which is no text")
    parsed = _element_type(dtype)
    return parsed, tuple(shape), math.prod(shape) * parsed.itemsize


@functools.lru_cache(64)
def _element_type(text: str) -> np.dtype[Any]:
    if not _DTYPE.fullmatch(text):
        raise malformed(f"array element type {text[:80]!r}")
    try:
        parsed = np.dtype(text)
    except (TypeError, ValueError) as error:
        raise malformed(f"array element type {text[:80]!r}") from error
    if not _crosses(parsed):
        raise malformed(f"array element type {text[:80]!r}")
    return parsed


def rebuild(buffer: bytes, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    """A read-only view on the bytes of ``buffer``."""
    try:
        return np.ndarray(shape, dtype, buffer)
    except (TypeError, ValueError, OverflowError) as error:
        raise malformed(f"an array of shape {shape}") from error


def check_text(array: np.ndarray) -> None:
    """Refuse an array of text in which something is no character: numpy would fail at it later."""
    if array.dtype.kind != "U" or not array.size:
        return
    points = array.reshape(-1).view(array.dtype.byteorder + "u4")
    if points.max() > _LAST_CODE_POINT:
        raise malformed("text that is not Unicode")


def malformed(found: str) -> ProtocolError:
    return ProtocolError(
        "decode a message", f"malformed: {found}", "check that both sides speak this wire"
    )


def unsendable(found: str) -> ProtocolError:
    return ProtocolError(
        "encode a message",
        f"{found} cannot cross the wire",
        "send text keys, and values that are JSON or arrays of numbers",
    )
