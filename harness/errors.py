"""The one error type of the toolkit, and the exit codes its commands end with.

Every message says what was asked, what was found and what to do about it, on one line. Anything
else that escapes is a defect of the toolkit and keeps its traceback.
"""

from __future__ import annotations

#: The command did what was asked.
EXIT_OK = 0
#: The command ran, but something it reports on is incomplete or in error (a PARTIAL table).
EXIT_PARTIAL = 1
#: The input, the configuration or the machine is at fault; the message says which and what to do.
EXIT_REFUSED = 2
#: Nothing is wrong, but the job's time is over: the same command again goes on.
EXIT_LATER = 75


class RollpoolError(Exception):
    """A refusal in plain words.

    Args:
        asked: what the user or the caller wanted, e.g. ``"queue.txt line 3: task 'put_cup'"``.
        found: what stands in the way, e.g. ``"no such task in scene 'study'"``.
        todo: what to do about it, e.g. ``"pick one of: put_cup_in_box, ..."``.
    """

    exit_code = EXIT_REFUSED

    def __init__(self, asked: str, found: str, todo: str) -> None:
        super().__init__(f"{asked}: {found}; {todo}")
        self.asked, self.found, self.todo = asked, found, todo


class Declined(RollpoolError):
    """A process could not do this one thing; it lives on, and may do the next."""


def one_line(error: BaseException) -> str:
    """A refusal in its own words, anything else with its type before them."""
    said = str(error) if isinstance(error, RollpoolError) else f"{type(error).__name__}: {error}"
    return " ".join(said.split())
