"""Messages with arrays over a socket: framed, capped, deadlined, never unpickled.

A message is a ``dict`` with text keys whose values are what JSON knows (tuples arrive as lists)
and numpy arrays of numbers, booleans, text, bytes or times. Two codecs carry it: ``binary`` (the
arrays' raw bytes after a JSON header, received straight into memory) and ``classic`` (JSON with
base64, byte for byte what RoboTwin's tools speak). A receiver tells them apart by the first byte.
"""

from harness.wire.connection import Connection, connect
from harness.wire.errors import ConnectionLost, DeadlinePassed, ProtocolError, RemoteError

__all__ = [
    "Connection",
    "ConnectionLost",
    "DeadlinePassed",
    "ProtocolError",
    "RemoteError",
    "connect",
]
