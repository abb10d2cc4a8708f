"""Both codecs: what goes in comes out, and nothing a stranger sends does anything but raise."""

from __future__ import annotations

import base64
import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.wire import ProtocolError, binary, classic
from harness.wire.frames import ALIGNMENT, Memory, padding

CODECS = {
    "binary": (binary.encode, binary.decode),
    "classic": (classic.encode_request, classic.decode),
}

DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?"),
    hnp.complex_number_dtypes(endianness="?"),
    hnp.byte_string_dtypes(endianness="?"),
    hnp.unicode_string_dtypes(endianness="?"),
    hnp.datetime64_dtypes(endianness="?"),
    hnp.timedelta64_dtypes(endianness="?"),
)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    array = draw(hnp.arrays(draw(DTYPES), draw(SHAPES)))
    turned = draw(st.sampled_from(["as it is", "transposed", "strided", "reversed"]))
    if turned == "transposed":
        return array.T
    if turned == "strided" and array.ndim:
        return array[::2]
    if turned == "reversed" and array.ndim:
        return array[..., ::-1]
    return array


KEYS = st.text(max_size=6).filter(lambda key: not key.startswith("__"))
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(max_size=10),
    arrays(),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)
MESSAGES = st.dictionaries(KEYS.filter(lambda key: key != "type"), VALUES, max_size=4).map(
    lambda fields: {"type": "infer", **fields}
)


def joined(parts: list[memoryview]) -> np.ndarray:
    return np.frombuffer(b"".join(parts), np.uint8)


def assert_same(got: Any, sent: Any) -> None:
    if isinstance(sent, np.ndarray):
        assert isinstance(got, np.ndarray)
        assert (got.dtype, got.shape) == (sent.dtype, sent.shape)
        assert got.tobytes() == sent.tobytes()
        assert not got.flags.writeable
    elif isinstance(sent, dict):
        assert got.keys() == sent.keys()
        for key, value in sent.items():
            assert_same(got[key], value)
    elif isinstance(sent, list):
        assert len(got) == len(sent)
        for one, other in zip(got, sent, strict=True):
            assert_same(one, other)
    else:
        assert type(got) is type(sent) and got == sent


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=150, deadline=None, derandomize=True)
@given(message=MESSAGES)
def test_any_message_comes_back_as_it_was(codec: str, message: dict[str, Any]) -> None:
    encode, decode = CODECS[codec]
    assert_same(decode(joined(encode(message))), message)


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(message=MESSAGES, data=st.data())
def test_a_message_cut_short_is_refused(codec: str, message: dict[str, Any], data: Any) -> None:
    encode, decode = CODECS[codec]
    payload = joined(encode(message))
    with pytest.raises(ProtocolError):
        decode(payload[: data.draw(st.integers(0, len(payload) - 1))])


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=150, deadline=None, derandomize=True)
@given(message=MESSAGES, data=st.data())
def test_a_damaged_message_decodes_or_is_refused(
    codec: str, message: dict[str, Any], data: Any
) -> None:
    encode, decode = CODECS[codec]
    payload = joined(encode(message)).copy()
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    try:
        str(decode(payload))  # reading every value must not raise either
    except ProtocolError:
        return


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=150, deadline=None, derandomize=True)
@given(garbage=st.binary(max_size=200))
def test_garbage_is_refused(codec: str, garbage: bytes) -> None:
    with pytest.raises(ProtocolError):
        CODECS[codec][1](np.frombuffer(garbage, np.uint8))


def described(dtype: Any, shape: Any, *more: Any, path: Any = ("x",), body: bytes) -> np.ndarray:
    """A payload with one array, described like this, and these bytes for it."""
    return payload_of([[path, dtype, shape, *more]], {"type": "ok", "x": None, "y": 0}, body)


def payload_of(layout: Any, message: Any, body: bytes = b"") -> np.ndarray:
    return packed(json.dumps(layout).encode(), json.dumps(message).encode(), body)


def packed(layout: bytes, message: bytes, body: bytes = b"") -> np.ndarray:
    sizes = len(layout).to_bytes(4, "big") + len(message).to_bytes(4, "big")
    start = binary.MAGIC + sizes + layout + message
    data = start + bytes(padding(len(start))) + body
    return np.frombuffer(data + bytes(padding(len(data))), np.uint8)


def test_these_payloads_are_right_but_for_what_is_wrong_with_them() -> None:
    assert binary.decode(described("<f4", [1], body=bytes(4)))["x"] == 0
    assert binary.decode(packed(b"[]", b'{"type": "ok"}')) == {"type": "ok"}


@pytest.mark.parametrize(
    "payload",
    [
        described("|O", [1], body=bytes(8)),
        described("object", [1], body=bytes(8)),
        described("<i4,<i4", [1], body=bytes(8)),
        described("V8", [1], body=bytes(8)),
        described("<f4", [-1], body=bytes(8)),
        described("<f4", [True], body=bytes(4)),
        described("<f4", [2**62], body=bytes(8)),
        described("<f4", [0, 2**70], body=b""),
        described("<f4", [10**4000, 10**4000], body=bytes(8)),
        described("<M8", [1], body=bytes(8)),
        described("<M8[0s]", [1], body=bytes(8)),
        described("<f4", [1] * 33, body=bytes(4)),
        described("<f4", [1], body=bytes(65)),
        described("<f4", [17], body=bytes(64)),
        described("<U1", [1], body=b"\xff\xff\xff\x7f"),
        described("<f4", "1", body=bytes(4)),
        described(4, [1], body=bytes(4)),
        described("<f4", [1], 0, body=bytes(4)),
        payload_of([[["x"], "<f4"]], {"type": "ok", "x": None}, bytes(4)),
        payload_of([0], {"type": "ok"}),
        payload_of({}, {"type": "ok"}),
        payload_of([], []),
        payload_of([[["x"], "<f4", [1]]] * 2, {"type": "ok", "x": None}, bytes(128)),
        *(
            described("<f4", [1], path=path, body=bytes(4))
            for path in ([], "x", ["y"], ["z"], ["x", 0], ["type", 0], [0], [None], [["x"]], [True])
        ),
        np.frombuffer(binary.MAGIC + b"\0\0\0\2\xff\xff\xff\xff[]{}", np.uint8),
        np.frombuffer(binary.MAGIC + b"\xff\xff\xff\xff\0\0\0\2[]{}", np.uint8),
        packed(b"[]", "{}".encode("utf-16-le")),
        packed("[]".encode("utf-16-le"), b"{}"),
        packed(b"[]", b"[" * 40000),
        packed(b"[" * 40000, b"{}"),
        packed(b"[]", b"{}{}"),
    ],
)
def test_binary_refuses(payload: np.ndarray) -> None:
    with pytest.raises(ProtocolError, match="malformed"):
        binary.decode(payload)


def test_the_binary_codec_of_another_version_is_named() -> None:
    older = np.frombuffer(b"RPB3" + bytes(20), np.uint8)
    with pytest.raises(ProtocolError, match=r"RPB3.*RPB4.*the same version of the toolkit on both"):
        binary.decode(memoryview(older))


def test_arrays_may_stand_in_lists_and_within_each_other() -> None:
    message = {"type": "infer", "a": [{"b": np.arange(3)}, [np.float32(1), np.ones(())]], "c": ()}
    got = binary.decode(joined(binary.encode(message)))
    assert_same(got["a"][0]["b"], np.arange(3))
    assert_same(got["a"][1], [1.0, np.ones(())])
    assert got["c"] == []


def test_a_refusal_shows_no_memory() -> None:
    """It is said while the arrays are on their way, so there may be anything in their place."""
    layout = [[["x"], "|S6", []], [["x", 0], "|S6", []]]
    with pytest.raises(ProtocolError) as raised:
        binary.decode(payload_of(layout, {"type": "hello", "x": None}, b"secret" + bytes(64)))
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"data": "AAAAAAAAAAA=", "dtype": "object", "shape": [1]},
        {"data": "AAAAAAAAAAA=", "dtype": "O", "shape": [1]},
        {"data": "AAAA", "dtype": "float32", "shape": [1]},
        {"data": "AAAAAA==", "dtype": "float32", "shape": [-1]},
        {"data": "AA\nAAAA==", "dtype": "float32", "shape": [1]},
        {"data": [0, 0], "dtype": "float32", "shape": [1]},
        {"data": "AAAAAA=="},
        {"data": "AAAAAAAAAAA=", "dtype": "datetime64", "shape": [1]},
    ],
)
def test_classic_refuses(fields: dict[str, Any]) -> None:
    obs = {"images": {"__numpy_array__": True, **fields}}
    payload = json.dumps({"cmd": "infer", "obs": obs}).encode()
    with pytest.raises(ProtocolError):
        classic.decode(np.frombuffer(payload, np.uint8))


@pytest.mark.parametrize("command", ["__class__", "get_action", "reset", None, ["infer"]])
def test_classic_knows_four_commands(command: Any) -> None:
    payload = json.dumps({"cmd": command, "obs": None}).encode()
    with pytest.raises(ProtocolError, match="command"):
        classic.decode(np.frombuffer(payload, np.uint8))


def test_classic_bytes_are_robotwins() -> None:
    array = np.array([[1.5, -2.0]], np.float32)
    message = {"type": "infer", "state": array, "n": np.int64(3), "text": "Tür"}
    data = base64.b64encode(array.tobytes()).decode()
    expected = (
        '{"cmd": "infer", "obs": {"state": {"__numpy_array__": true, "data": "'
        + data
        + '", "dtype": "float32", "shape": [1, 2]}, "n": 3, "text": "T\\u00fcr"}}'
    )
    assert joined(classic.encode_request(message)).tobytes() == expected.encode()
    reset = joined(classic.encode_request({"type": "reset"})).tobytes()
    assert reset == b'{"cmd": "reset_model", "obs": null}'


def test_classic_replies_carry_their_type() -> None:
    reply = {"type": "actions", "actions": np.ones((2, 3), np.float32)}
    assert_same(classic.decode(joined(classic.encode_reply(reply))), reply)
    error = {"type": "error", "kind": "policy", "message": "no", "traceback": "line 1"}
    payload = joined(classic.encode_reply(error))
    assert json.loads(payload.tobytes()) == {"error": "no", "traceback": "line 1", "kind": "policy"}
    assert classic.decode(payload) == error


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    "value",
    [
        np.array([object()]),
        np.zeros(2, "i4,i4"),
        np.zeros(2, "M8"),
        b"bytes",
        {1: "number as a key"},
        np.complex64(1j),
        object(),
        10**5000,
    ],
    ids=["objects", "records", "no unit", "bytes", "number as a key", "complex", "object", "huge"],
)
def test_what_cannot_cross_is_refused_at_the_sender(codec: str, value: Any) -> None:
    with pytest.raises(ProtocolError):
        CODECS[codec][0]({"type": "infer", "value": value})


def test_a_key_that_would_read_as_an_array_is_refused() -> None:
    with pytest.raises(ProtocolError, match="__numpy_array__"):
        classic.encode_request({"type": "infer", "value": [{"__numpy_array__": 0}]})


@pytest.mark.parametrize("codec", CODECS)
def test_a_pickle_is_only_bytes(codec: str) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return (pytest.fail, ("unpickled",))

    with pytest.raises(ProtocolError):
        CODECS[codec][1](np.frombuffer(pickle.dumps(Bomb()), np.uint8))


def test_binary_arrays_are_aligned_views_of_the_payload() -> None:
    images = {name: np.full((3, 5, 3), n, np.uint8) for n, name in enumerate("abc")}
    sent = joined(binary.encode({"type": "infer", "images": images}))
    payload = Memory().payload(len(sent))
    payload[:] = sent.data
    for name, image in binary.decode(payload)["images"].items():
        assert np.shares_memory(image, np.frombuffer(payload, np.uint8))
        assert image.ctypes.data % ALIGNMENT == 0
        assert (image == images[name]).all()


@settings(max_examples=50, deadline=None, derandomize=True)
@given(message=MESSAGES)
def test_frames_follow_each_other_on_boundaries(message: dict[str, Any]) -> None:
    """Each copy of the kernel's then finds its bytes where they will lie in memory."""
    assert (4 + len(joined(binary.encode(message)))) % ALIGNMENT == 0


def test_the_message_is_read_while_the_arrays_come() -> None:
    message = {"type": "infer", "image": np.arange(1000, dtype=np.uint16), "names": np.array("ä")}
    sent = joined(binary.encode(message))
    payload, asked = np.zeros(len(sent), np.uint8), [0]

    def need(size: int) -> None:
        asked.append(size)
        payload[:size] = sent[:size]

    assert_same(binary.decode(payload, need), message)
    assert asked == sorted(asked) and asked[-1] == len(sent)
    assert asked[-2] < len(sent) - 2000


def test_a_message_that_holds_itself_is_refused() -> None:
    message: dict[str, Any] = {"type": "infer"}
    message["itself"] = [message]
    with pytest.raises(ProtocolError):
        binary.encode(message)


def test_binary_does_not_copy_what_it_sends() -> None:
    image = np.zeros((4, 4, 3), np.uint8)
    parts = binary.encode({"type": "infer", "image": image})
    assert any(np.shares_memory(np.frombuffer(part, np.uint8), image) for part in parts)
