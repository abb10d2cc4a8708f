"""A call that goes on while its caller begins the next thing.

Promises: one call at a time, in the order they were given; what one raised is raised by whoever
comes next, so it is lost only where nobody comes. Not promised: a deadline, beyond the call's own;
that a call is waited for whose beginning a signal met.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable


class Behind:
    """A thread at most, which ``settle`` waits for."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def call(self, what: Callable[[], object]) -> None:
        """Begin ``what``, as soon as the call before it has ended. Raises what that raised."""
        self.settle()
        self._thread = threading.Thread(target=self._run, args=(what,), name="behind")
        self._thread.start()

    def settle(self) -> None:
        """Wait until no call goes on. Raises what the last one raised."""
        if self._thread is not None:
            with contextlib.suppress(RuntimeError):  # a signal came before it had begun
                self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self, what: Callable[[], object]) -> None:
        try:
            what()
        except BaseException as error:  # whoever comes next raises it
            self._error = error
