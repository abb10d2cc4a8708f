"""The channel: whole messages, deadlines, and an end that is noticed."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.episodes.channel import Channel, ChannelClosed

Pair = tuple[Channel, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    yield channel, theirs
    channel.close()
    theirs.close()


def test_messages_arrive_whole_however_they_are_cut(pair: Pair) -> None:
    channel, theirs = pair
    for byte in b'{"do":"seal","task":"a\\nb"}\n{"do":"quit"}\n':
        assert channel.receive(0) is None
        theirs.send(bytes([byte]))
        if byte == ord("\n"):
            break
    assert channel.receive(0) == {"do": "seal", "task": "a\nb"}
    theirs.send(b'{"n":1}\n{"n":2}\n')
    assert [channel.receive(0), channel.receive(0), channel.receive(0)] == [
        {"n": 1},
        {"n": 2},
        None,
    ]


@pytest.mark.parametrize("garbage", [b"hello\n", b"[1]\n", b"\xff\n", b"\n"])
def test_garbage_is_the_end(pair: Pair, garbage: bytes) -> None:
    channel, theirs = pair
    theirs.send(garbage)
    with pytest.raises(ChannelClosed, match="not a JSON"):
        channel.receive(0)


def test_an_endless_line_is_the_end(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.episodes.channel.MAX_LINE", 1000)
    channel, theirs = pair
    theirs.send(b"x" * 2000)
    with pytest.raises(ChannelClosed, match="longer than"):
        channel.receive(0)


def test_the_other_end_gone_is_noticed_both_ways(pair: Pair) -> None:
    channel, theirs = pair
    theirs.send(b'{"last":"words"}\n{"torn')
    theirs.close()
    assert channel.receive(None) == {"last": "words"}
    with pytest.raises(ChannelClosed):
        channel.receive(None)
    with pytest.raises(ChannelClosed):
        channel.send({})
    channel.close()
    with pytest.raises(ChannelClosed, match="this end"):
        channel.receive(1)


def test_a_peer_that_does_not_listen_is_as_good_as_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.episodes.channel.SEND_DEADLINE_S", 0.05)
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(ChannelClosed, match="could not send"):
        Channel(ours).send({"long": "x" * 10_000_000})


_VALUES = st.text() | st.integers() | st.none() | st.lists(st.text(), max_size=3)


@settings(max_examples=30)
@given(st.lists(st.dictionaries(st.text(), _VALUES, max_size=3), max_size=5))
def test_every_message_comes_out_as_it_went_in(messages: list[dict[str, object]]) -> None:
    ours, theirs = (Channel(end) for end in socket.socketpair())
    for message in messages:
        ours.send(message)
    assert [theirs.receive(0) for _ in messages] == messages
    ours.close()
    theirs.close()
