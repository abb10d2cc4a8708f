"""The binary codec: a JSON header, then the arrays' own bytes.

Payload: ``RPB2``, 4-byte big-endian header length, the header, then each array on the next multiple
of 64 bytes from the start of the frame (the payload's length, 4 bytes, comes before it), and so to
the end. In the header an array is ``{"__array__": index}`` and the top level carries
``"__arrays__": [{"dtype", "shape"}, ...]``. Decoded arrays are read-only views on the payload:
nothing is copied.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.wire.arrays import checked, malformed, parse_spec, plain, raw_bytes, rebuild
from harness.wire.errors import ProtocolError
from harness.wire.frames import ALIGNMENT, padding

MAGIC = b"RPB2"
_REFERENCE, _TABLE = "__array__", "__arrays__"
_PREFIX = struct.Struct(">4sI")
_ZEROS = memoryview(bytes(ALIGNMENT))
_JSON = json.JSONEncoder(separators=(",", ":"))
#: What JSON knows and holds nothing: most values of a message, so they are passed by quickly.
_PLAIN = (str, int, float, bool, type(None))


def encode(message: dict[str, Any]) -> list[memoryview]:
    """The parts of the payload, arrays uncopied where they are in C order already."""
    arrays: list[np.ndarray] = []
    try:
        tree = _with_references(message, arrays)
        tree[_TABLE] = [{"dtype": a.dtype.str, "shape": a.shape} for a in arrays]
        header = _JSON.encode(tree).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise unsendable(str(error)) from error
    end = _PREFIX.size + len(header)
    start = _PREFIX.pack(MAGIC, len(header)) + header + _ZEROS[: padding(end)]
    parts, end = [memoryview(start)], len(start)
    for array in arrays:
        end += array.nbytes
        parts += [raw_bytes(array), _ZEROS[: padding(end)]]
        end += padding(end)
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
        raise malformed("no RPB2 header")
    need(end)
    try:
        tree = json.loads(str(payload[_PREFIX.size : end].data, "utf-8"))
    except (ValueError, RecursionError) as error:
        raise malformed(f"header: {error}") from error
    if not isinstance(tree, dict) or not isinstance(tree.get(_TABLE), list):
        raise malformed("a header without an array table")
    need(len(payload))
    arrays = _arrays(payload, end, tree.pop(_TABLE))
    if _REFERENCE in tree:
        raise malformed("a message that is an array")
    try:
        _resolve(tree, arrays)
    except RecursionError as error:
        raise malformed("a message nested too deeply") from error
    return tree


def _arrays(payload: np.ndarray, end: int, table: list[Any]) -> list[np.ndarray]:
    arrays = []
    for entry in table:
        if not isinstance(entry, dict):
            raise malformed("an entry of the array table")
        dtype, shape, size = parse_spec(entry.get("dtype"), entry.get("shape"))
        start = end + padding(end)
        end = start + size
        if end > len(payload):
            raise malformed("arrays larger than the payload")
        arrays.append(rebuild(payload, dtype, shape, start))
    end += padding(end)
    if end != len(payload):
        raise malformed(f"{len(payload)} bytes instead of {end}")
    return arrays


def _with_references(value: Any, arrays: list[np.ndarray]) -> Any:
    """A JSON tree of ``value``, its arrays appended to ``arrays`` and referred to."""
    if isinstance(value, np.ndarray):
        arrays.append(checked(value))
        return {_REFERENCE: len(arrays) - 1}
    if isinstance(value, np.generic):
        return plain(value)
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str) or key in (_REFERENCE, _TABLE):
                raise unsendable(f"the key {key!r}")
        return {
            key: item if type(item) in _PLAIN else _with_references(item, arrays)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_with_references(item, arrays) for item in value]
    return value


def _resolve(holder: Any, arrays: list[np.ndarray]) -> None:
    """Put the arrays where ``holder``, an object or a list, and what it holds refer to them."""
    for key, value in holder.items() if type(holder) is dict else enumerate(holder):
        if type(value) is dict and _REFERENCE in value:
            holder[key] = _referred(value[_REFERENCE], arrays)
        elif type(value) in (dict, list):
            _resolve(value, arrays)


def _referred(index: Any, arrays: list[np.ndarray]) -> np.ndarray:
    if type(index) is not int or not 0 <= index < len(arrays):
        raise malformed(f"a reference to array {str(index)[:80]}")
    return arrays[index]


def unsendable(found: str) -> ProtocolError:
    return ProtocolError(
        "encode a message",
        f"{found} cannot cross the wire",
        "send text keys, and values that are JSON or arrays of numbers",
    )
