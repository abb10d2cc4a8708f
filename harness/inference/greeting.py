"""Whoever listens reads little of a stranger, and says why it is refused."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any

from harness.errors import one_line

#: Bytes of a frame, and so of what is kept of it, before its sender has said the token.
STRANGER_LIMIT = 4 * 1024


def knows(token: str, message: Mapping[str, Any]) -> bool:
    """Whether ``message`` has the run's ``token``. It is a stranger's: there may be anything."""
    given = message.get("token")
    if not isinstance(given, str):
        return False
    return hmac.compare_digest(given.encode(errors="replace"), token.encode())


def refusal(error: BaseException, kind: str = "protocol", traceback: str = "") -> dict[str, Any]:
    """The reply that says what is wrong with a request, or with the policy."""
    return {"type": "error", "kind": kind, "message": one_line(error), "traceback": traceback}
