"""What tinyvla makes of an observation before torch sees it: small pictures and word numbers.

Numpy alone, because the collector runs in the simulator's Python. Promises: training and evaluation
see pictures that were shrunk by the same arithmetic, and any sentence gives at least one token.
"""

from __future__ import annotations

import re
import zlib

import numpy as np

CAMERAS = ("countertop", "left_wrist", "right_wrist")
#: (height, width) of the pictures in ``image_input``.
PICTURE = (120, 160)
#: The wrists see things from near: half the size will do.
WRIST_PICTURE = (60, 80)
#: Words are hashed into this many numbers; 0 pads.
VOCABULARY = 1024
SENTENCE = 24  # tokens


def shrink(picture: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """``(H, W, 3)`` uint8 -> ``(3, h, w)`` float32 in 0..255: the means of equal blocks of pixels.

    Raises:
        ValueError: H, W are no multiple of ``size``.
    """
    (height, width), (h, w) = picture.shape[:2], size
    if height % h or width % w:
        raise ValueError(f"pictures of {width}x{height}; tinyvla takes multiples of {w}x{h}")
    down, across = height // h, width // w
    rows = np.zeros((h, width, 3), np.float32)
    for k in range(down):
        rows += picture[k::down]
    total = np.zeros((h, w, 3), np.float32)
    for k in range(across):
        total += rows[:, k::across]
    return total.transpose(2, 0, 1) / (down * across)


def tokenize(sentence: str) -> np.ndarray:
    """``(SENTENCE,)`` int64: the words' hashes; a word never seen in training has one too."""
    words = re.findall(r"[a-z0-9]+", sentence.lower())[:SENTENCE] or [""]
    tokens = [zlib.crc32(word.encode()) % (VOCABULARY - 1) + 1 for word in words]
    return np.array(tokens + [0] * (SENTENCE - len(tokens)), np.int64)
