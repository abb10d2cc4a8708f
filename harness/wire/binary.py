"""The binary codec: a JSON header, then the arrays' own bytes.

Payload: ``RPB3``, 4-byte big-endian header length, the header, then each array on the next multiple
of 64 bytes from the start of the frame (the payload's length, 4 bytes, comes before it), and so to
the end. In the header an array is ``{"__array__": [dtype, shape]}``; the arrays' bytes lie in the
order in which the header names them. Decoded arrays are read-only views on the payload: nothing is
copied.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.wire.arrays import (
    check_text,
    checked,
    malformed,
    parse_spec,
    plain,
    raw_bytes,
    rebuild,
)
from harness.wire.errors import ProtocolError
from harness.wire.frames import ALIGNMENT, padding

MAGIC = b"RPB3"
_MARK = "__array__"
_PREFIX = struct.Struct(">4sI")
_ZEROS = memoryview(bytes(ALIGNMENT))


def encode(message: dict[str, Any]) -> list[memoryview]:
    """The parts of the payload, arrays uncopied where they are in C order already."""
    arrays: list[np.ndarray] = []

    def described(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            arrays.append(checked(value))
            return {_MARK: [value.dtype.str, value.shape]}
        if isinstance(value, np.generic):
            return plain(value)
        raise TypeError(f"a value of type {type(value).__name__}")

    try:
        refuse_ambiguous(message, _MARK)
        header = json.dumps(message, separators=(",", ":"), default=described).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise unsendable(str(error)) from error
    end = _PREFIX.size + len(header)
    start = _PREFIX.pack(MAGIC, len(header)) + header + _ZEROS[: padding(end)]
    parts, end = [memoryview(start)], len(start)
    for array in arrays:
        end += array.nbytes
        gap = padding(end)
        parts += (raw_bytes(array), _ZEROS[:gap])
        end += gap
    return [part for part in parts if len(part)]


def decode(payload: np.ndarray, need: Callable[[int], None] = lambda size: None) -> dict[str, Any]:
    """The message in ``(n,)`` uint8, whose arrays are read-only views on it.

    ``need(size)`` waits for the first ``size`` bytes of a payload that is on its way: the header is
    read while the arrays come.
    """
    if len(payload) < _PREFIX.size:
        raise malformed("a payload cut short")
    need(_PREFIX.size)
    magic, header_size = _PREFIX.unpack(payload[: _PREFIX.size].data)
    end = _PREFIX.size + header_size
    if magic != MAGIC or end > len(payload):
        raise malformed("no RPB3 header")
    need(end)
    views = _Views(payload, end)
    try:
        header = str(payload[_PREFIX.size : end].data, "utf-8")
        message = json.loads(header, object_hook=views.replace)
    except (ValueError, RecursionError) as error:
        raise malformed(f"header: {error}") from error
    if not isinstance(message, dict):
        raise malformed("a header that is no object")
    need(len(payload))
    views.finish()
    return message


class _Views:
    """The arrays of ``payload``, one after the other as the header names them, from ``end`` on."""

    def __init__(self, payload: np.ndarray, end: int) -> None:
        self._payload, self._end = payload, end + padding(end)
        self._arrays: list[np.ndarray] = []

    def replace(self, fields: dict[str, Any]) -> Any:
        """An object of the header, or the array that it describes."""
        if _MARK not in fields:
            return fields
        described = fields[_MARK]
        if len(fields) > 1 or type(described) is not list or len(described) != 2:
            raise malformed("the description of an array")
        dtype, shape, size = parse_spec(*described)
        start, end = self._end, self._end + size
        if end > len(self._payload):
            raise malformed("arrays larger than the payload")
        self._end = end + padding(end)
        array = rebuild(self._payload, dtype, shape, start)
        self._arrays.append(array)
        return array

    def finish(self) -> None:
        """All of the payload has come."""
        if self._end != len(self._payload):
            raise malformed(f"{len(self._payload)} bytes instead of {self._end}")
        for array in self._arrays:
            check_text(array)


def refuse_ambiguous(value: Any, mark: str) -> None:
    """JSON would turn other keys into text, and ``mark`` into an array, silently."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str) or key == mark:
                raise unsendable(f"the key {key!r}")
            refuse_ambiguous(item, mark)
    elif isinstance(value, (list, tuple)):
        for item in value:
            refuse_ambiguous(item, mark)


def unsendable(found: str) -> ProtocolError:
    return ProtocolError(
        "encode a message",
        f"{found} cannot cross the wire",
        "send text keys, and values that are JSON or arrays of numbers",
    )
