"""A log for a terminal: the program in a pod that writes it must not control the terminal of its reader.

Colours and carriage returns stay, for progress bars. What moves the cursor, sets the title or the clipboard, answers for the
reader, or turns the direction of text, is replaced.
"""

import codecs
import re

_COLOUR = r"\x1b\[[0-9;:]{0,32}m"
_UNSAFE = re.compile(rf"({_COLOUR})|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_BEGUN = re.compile(r"\x1b(\[[0-9;:]{0,32})?\Z")


class Tame:
    """Of one log, which comes in chunks."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = ""
        self._coloured = False

    def feed(self, chunk: bytes) -> str:
        """What may be printed so far; a sequence that is cut through comes with the next chunk."""
        text = self._begun + self._decoder.decode(chunk)
        begun = _BEGUN.search(text)
        self._begun = begun[0] if begun else ""
        self._coloured |= "\x1b[" in text
        return _UNSAFE.sub(lambda found: found[1] or "\N{REPLACEMENT CHARACTER}", text.removesuffix(self._begun))

    def end(self) -> str:
        """What is left of a character or sequence that was cut through; and no colour stays, nor what hides text."""
        rest = "\N{REPLACEMENT CHARACTER}" if self._begun or self._decoder.decode(b"", final=True) else ""
        self._begun = ""
        return rest + ("\x1b[0m" if self._coloured else "")
