"""The binary codec: a layout of the arrays, the message as JSON, then the arrays' own bytes.

Payload: ``RPB4``, the lengths of layout and message (4 bytes each, big-endian), both of these as
JSON, then each array on the next multiple of 64 bytes from the start of the frame (the payload's
length, 4 bytes, comes before it), and so to the end. The layout is ``[[path, dtype, shape], ...]``
in the order of the arrays' bytes; the message has null in an array's place. So a layout is read
once: messages of one kind have the same. Decoded arrays are read-only views on the payload:
nothing is copied.
"""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from harness.wire.arrays import (
    check_text,
    check_type,
    malformed,
    parse_spec,
    plain,
    raw_bytes,
    unsendable,
)
from harness.wire.errors import ProtocolError
from harness.wire.frames import ALIGNMENT, padding

MAGIC = b"RPB4"
_PREFIX = struct.Struct(">4sII")
_ZEROS = memoryview(bytes(ALIGNMENT))
_ENCODER = json.JSONEncoder(separators=(",", ":"), default=plain)
_DECODER = json.JSONDecoder()
_LEAVES = frozenset((str, int, float, bool, type(None)))
_Path = tuple[str | int, ...]


def encode(message: dict[str, Any]) -> list[memoryview]:
    """The parts of the payload, arrays uncopied where they are in C order already."""
    found: list[tuple[_Path, np.ndarray]] = []
    try:
        text = _ENCODER.encode(_without_arrays(message, (), found)).encode()
        layout = _described(tuple([(path, array.dtype, array.shape) for path, array in found]))
    except (TypeError, ValueError, RecursionError) as error:
        raise unsendable(str(error)) from error
    start = _PREFIX.pack(MAGIC, len(layout), len(text)) + layout + text
    parts = [memoryview(start + _ZEROS[: padding(len(start))])]
    for _, array in found:
        parts.append(raw_bytes(array))
        if gap := -array.nbytes % ALIGNMENT:
            parts.append(_ZEROS[:gap])
    return parts


def _without_arrays(value: Any, path: _Path, found: list[tuple[_Path, np.ndarray]]) -> Any:
    """An object or a list with None in the place of each array; these go to ``found``."""
    named = isinstance(value, dict)
    plain: dict[Any, Any] = {}
    for key, item in value.items() if named else enumerate(value):
        if type(key) is not str and named and not isinstance(key, str):
            raise TypeError(f"the key {key!r}")
        if type(item) in _LEAVES:
            plain[key] = item
        elif isinstance(item, np.ndarray):
            found.append(((*path, key), np.asarray(item, order="C")))
            plain[key] = None
        elif isinstance(item, (dict, list, tuple)):
            plain[key] = _without_arrays(item, (*path, key), found)
        else:
            plain[key] = item  # the encoder's to judge
    return plain if named else list(plain.values())


@functools.lru_cache(64)
def _described(arrays: tuple[tuple[_Path, np.dtype[Any], tuple[int, ...]], ...]) -> bytes:
    for _, dtype, _ in arrays:
        check_type(dtype)
    layout = [(path, dtype.str, shape) for path, dtype, shape in arrays]
    return _ENCODER.encode(layout).encode()


def decode(payload: memoryview, need: Callable[[int], None] = lambda size: None) -> dict[str, Any]:
    """The message in a payload, whose arrays are read-only views on it.

    ``need(size)`` waits for the first ``size`` bytes of a payload that is on its way: layout and
    message are read while the arrays come.
    """
    view = memoryview(payload).toreadonly()
    if len(view) < _PREFIX.size:
        raise malformed("a payload cut short")
    need(_PREFIX.size)
    magic, layout_size, text_size = _PREFIX.unpack_from(view)
    text_start = _PREFIX.size + layout_size
    end = text_start + text_size
    if magic != MAGIC and magic[:3] == MAGIC[:3]:
        raise _another_wire(magic)
    if magic != MAGIC or end > len(view):
        raise malformed("no RPB4 header")
    need(end)
    layout = _layout(bytes(view[_PREFIX.size : text_start]))
    start = end + padding(end)
    if start + layout.size != len(view):
        raise malformed(f"{len(view)} bytes instead of {start + layout.size}")
    message = _parsed(view[text_start:end])
    if not isinstance(message, dict):
        raise malformed("a message that is no object")
    texts = _fill(message, layout.places, view, start)
    need(len(view))
    for array in texts:
        check_text(array)
    return message


def _another_wire(magic: bytes) -> ProtocolError:
    """Of a message that an older or newer binary codec begins like this."""
    return ProtocolError(
        "decode a message",
        f"it begins with {magic!r}, this side speaks {MAGIC!r}: other code is at the other end",
        "use the same version of the toolkit on both sides",
    )


class _Place(NamedTuple):
    """Where an array stands in the message, and its bytes, counted from those of the first."""

    outer: _Path
    key: str | int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int


class _Layout(NamedTuple):
    places: tuple[_Place, ...]
    size: int  # bytes of all arrays, each to the next boundary


@functools.lru_cache(64)
def _layout(described: bytes) -> _Layout:
    described_arrays, places, end = _parsed(described), [], 0
    for each in described_arrays if isinstance(described_arrays, list) else [None]:
        if not isinstance(each, list) or len(each) != 3:
            raise malformed("the description of an array")
        path, (dtype, shape, size) = each[0], parse_spec(*each[1:])
        if not isinstance(path, list) or not path or {type(k) for k in path} - {str, int}:
            raise malformed("the place of an array")
        places.append(_Place(tuple(path[:-1]), path[-1], dtype, shape, end))
        end += size + -size % ALIGNMENT
    return _Layout(tuple(places), end)


def _fill(
    message: Any, places: tuple[_Place, ...], view: memoryview, start: int
) -> list[np.ndarray]:
    """Put all arrays in their places; those of text, to be checked when their bytes are there."""
    texts = []
    try:
        for outer, key, dtype, shape, offset in places:
            into = message
            for name in outer:
                into = into[name]
            if into[key] is not None:
                raise malformed("an array in the place of something else")
            array: np.ndarray = np.ndarray(shape, dtype, view, start + offset)
            into[key] = array
            if dtype.kind == "U":
                texts.append(array)
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise malformed("an array with a shape, or a place, that cannot be") from error
    return texts


def _parsed(text: bytes | memoryview) -> Any:
    try:
        decoded = str(text, "utf-8")
        value, end = _DECODER.raw_decode(decoded)
    except (ValueError, RecursionError) as error:
        raise malformed(str(error)) from error
    if end != len(decoded):
        raise malformed("more than one value")
    return value
