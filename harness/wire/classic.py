"""The classic codec: UTF-8 JSON with base64 arrays, byte for byte as RoboTwin's tools write it.

On this wire a request is ``{"cmd": name, "obs": fields or null}`` and a reply ``{"res": ...}`` or
``{"error", "traceback"}``. ``encode`` and ``decode`` turn these into the same messages the binary
codec carries and back, so that nobody above the wire knows which codec a peer speaks.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

import numpy as np

from harness.wire.arrays import (
    check_text,
    check_type,
    malformed,
    parse_spec,
    plain,
    rebuild,
    unsendable,
)

_MARK = "__numpy_array__"
_TYPE_OF_COMMAND = {
    "hello": "hello",
    "reset_model": "reset",
    "infer": "infer",
    "close": "close",
}
_COMMAND_OF_TYPE = {kind: command for command, kind in _TYPE_OF_COMMAND.items()}


def encode_request(message: dict[str, Any]) -> list[memoryview]:
    fields = {key: value for key, value in message.items() if key != "type"}
    return dump({"cmd": _COMMAND_OF_TYPE[message["type"]], "obs": fields or None})


def encode_reply(message: dict[str, Any]) -> list[memoryview]:
    if message["type"] == "error":
        error = {"error": message["message"], "traceback": message["traceback"]}
        return dump({**error, "kind": message["kind"]})
    return dump({"res": message})


def decode(payload: memoryview) -> dict[str, Any]:
    """The message in a request or reply, with its ``type``."""
    outer = load(payload)
    if not isinstance(outer, dict):
        raise malformed("neither a request nor a reply")
    if "cmd" in outer:
        return _request(outer["cmd"], outer.get("obs"))
    if "error" in outer:
        return {
            "type": "error",
            "kind": outer.get("kind", "policy"),
            "message": str(outer["error"]),
            "traceback": str(outer.get("traceback", "")),
        }
    result = outer.get("res")
    if not isinstance(result, dict) or not isinstance(result.get("type"), str):
        raise malformed("a reply without a result")
    return result


def dump(value: Any) -> list[memoryview]:
    """``value`` as the bytes RoboTwin's encoder makes of it."""
    try:
        _refuse_ambiguous(value)
        return [memoryview(json.dumps(value, default=_as_json).encode())]
    except (TypeError, ValueError, RecursionError) as error:
        raise unsendable(str(error)) from error


def load(payload: memoryview) -> Any:
    """What ``dump`` was given; arrays are read-only."""
    try:
        return json.loads(str(payload, "utf-8"), object_hook=_array_or_dict)
    except (ValueError, RecursionError) as error:
        raise malformed(str(error)) from error


def _refuse_ambiguous(value: Any) -> None:
    """JSON would turn other keys into text, and ``_MARK`` into an array, silently."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str) or key == _MARK:
                raise unsendable(f"the key {key!r}")
            _refuse_ambiguous(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _refuse_ambiguous(item)


def _request(command: Any, fields: Any) -> dict[str, Any]:
    # Only these commands exist: a peer that could name any method could call any method.
    if not isinstance(command, str) or command not in _TYPE_OF_COMMAND:
        raise malformed(f"command {str(command)[:80]!r}, not one of {', '.join(_TYPE_OF_COMMAND)}")
    if fields is not None and not isinstance(fields, dict):
        raise malformed(f"'obs' of {command!r} is neither null nor an object")
    return {**(fields or {}), "type": _TYPE_OF_COMMAND[command]}


def _as_json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        check_type(value.dtype)
        data = base64.b64encode(np.asarray(value).tobytes()).decode("ascii")
        return {_MARK: True, "data": data, "dtype": str(value.dtype), "shape": value.shape}
    if isinstance(value, np.generic):
        return plain(value)
    raise TypeError(f"a value of type {type(value).__name__}")


def _array_or_dict(fields: dict[str, Any]) -> Any:
    if _MARK not in fields:
        return fields
    data = fields.get("data")
    dtype, shape, size = parse_spec(fields.get("dtype"), fields.get("shape"))
    if not isinstance(data, str):
        raise malformed("an array without data")
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise malformed(f"array data: {error}") from error
    if len(raw) != size:
        raise malformed(f"an array of {len(raw)} bytes where its shape needs {size}")
    array = rebuild(raw, dtype, shape)
    check_text(array)
    return array
