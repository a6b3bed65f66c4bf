"""What a queue is called: the path of its node as one DNS label, and five letters that keep it apart from others."""

import re
from random import Random

LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Those Kubernetes makes random names of: no vowels, so no words."""
_LONGEST = 63
_SUFFIX = 5


def queue_name(path: str, rng: Random) -> str:
    """``root/child-2`` as ``root-child-2-v5zxz``; a path too long for a label keeps its beginning."""
    stem = re.sub(r"[^a-z0-9]+", "-", path.lower())[: _LONGEST - _SUFFIX - 1].rstrip("-")
    return f"{stem}-{''.join(rng.choices(LETTERS, k=_SUFFIX))}"
