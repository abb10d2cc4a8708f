"""What makes an episode of a checkout depend on itself alone.

Upstream seeds numpy and torch at the start of an episode, but not ``random``; it draws from numpy's
generator whenever it renders; and it asks questions on stdin. Promises: ``seeded`` gives every
generator the episode's own state; ``borrowed`` renders without a trace in the generators;
``guarded`` makes a prompt, an ``exit()`` and a missing file an error that says what is missing.
(What it keeps in default arguments is in ``default_arguments``.)
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import os
import random
import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from harness.errors import RollpoolError

#: Says that the machine is at fault, and nothing about the seed.
_MACHINE = re.compile(r"cuda|out of memory|OutOfDeviceMemory|vk::|vulkan", re.IGNORECASE)
_NO_DEVICE = re.compile(r"rendering device|render device", re.IGNORECASE)
_ASSETS = "download the checkout's assets with its own script (docs/robotwin.md)"


class UnstableSeed(RollpoolError):
    """The scene of this seed does not come to rest: it is no episode here."""


def seeded(task: str, task_config: str, seed: int) -> None:
    """Every generator that upstream draws from, from what the episode is."""
    random.seed(derived(task, task_config, seed))
    np.random.seed(seed % 2**32)
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def derived(*what: object) -> int:
    """A number below 2**32 that depends on all of ``what``."""
    return int.from_bytes(hashlib.sha256(repr(what).encode()).digest()[:4], "big")


@contextlib.contextmanager
def borrowed(seed: int) -> Iterator[None]:
    """Let the generators start from ``seed``, then go on as if nothing had been drawn."""
    plain, numpys = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(plain)
        np.random.set_state(numpys)


@contextlib.contextmanager
def guarded(asked: str) -> Iterator[None]:
    """Around a call of upstream's: what it raises, where that can be said better, is a
    ``RollpoolError``; anything else passes with its traceback."""
    ask, builtins.input = builtins.input, _refuse_to_answer
    try:
        yield
    except EOFError as error:
        found = f"the checkout asks a question, and nobody is there: {error}"
        raise RollpoolError(asked, found, _ASSETS) from error
    except SystemExit as error:
        raise RollpoolError(
            asked, f"the checkout called exit({'' if error.code is None else error.code})",
            "see what it printed before, in this process's log",
        ) from error  # fmt: skip
    except FileNotFoundError as error:
        raise RollpoolError(asked, f"no file {error.filename or error}", _ASSETS) from error
    except Exception as error:
        if type(error).__name__ == "UnStableError":
            todo = "take the seed out of the bank"
            raise UnstableSeed(asked, " ".join(str(error).split()), todo) from error
        if _NO_DEVICE.search(str(error)):
            todo = "use a node whose GPU renders (VK_ICD_FILENAMES names its driver)"
            raise RollpoolError(asked, " ".join(str(error).split()), todo) from error
        raise
    finally:
        builtins.input = ask


def of_the_machine(error: Exception) -> bool:
    """Whether an exception of upstream's says nothing about the seed it came with."""
    return bool(_MACHINE.search(str(error)))


def close_stdin() -> None:
    """Whatever reads stdin, in C too, finds its end."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    sys.stdin = open(os.devnull, encoding="utf-8")


def _refuse_to_answer(prompt: object = "", /) -> str:
    raise EOFError(str(prompt).strip())
