"""A hostile program writes into a log that is read at a terminal, or into a file."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from frontend.cli.output import Screen
from frontend.cli.terminal import Tame

HOSTILE = {
    "the title": b"\x1b]0;mine\x07", "the clipboard": b"\x1b]52;c;ZWNobw==\x07", "a link": b"\x1b]8;;https://evil.example\x1b\\x",
    "the screen": b"\x1b[2J\x1b[H", "an answer": b"\x1b[6n\x1b[c", "one byte": "\x9b2J\x9d0;x\x9c".encode(),
    "the line before": b"\x1b[1A\x1b[2K", "rubbed out": b"a\x08b\x7f", "the direction": "\u202egnp.exe".encode(),
    "a mark": "\u200f\u061c".encode(),
    "no UTF-8": b"\xff\xfe\x9b2J", "a string": b"\x1bPq#0\x1b\\",
}  # fmt: skip
WELL = "step 1\n\tloss 0.5 \r 10% \x1b[1;32mgreen\x1b[0m \x1b[38;5;9mred\x1b[m \N{EURO SIGN}\n"
TEXT = WELL.encode() + b"".join(HOSTILE.values())


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def printed(kind: type[io.TextIOWrapper], *chunks: bytes, encoding: str = "utf-8") -> bytes:
    raw = io.BytesIO()
    file = kind(raw, encoding=encoding)
    screen = Screen(Console(file=file), Console(file=file))
    screen.log(chunks)
    return raw.getvalue()


@pytest.mark.parametrize("what", HOSTILE)
def test_a_log_does_not_control_the_terminal_of_its_reader(what: str) -> None:
    text = printed(Terminal, HOSTILE[what]).decode().removesuffix("\x1b[0m")
    assert text and not any(char in text for char in "\x1b\x07\x08\x7f\x9b\x9c\x9d\u202e")


def test_colours_and_progress_bars_stay() -> None:
    assert printed(Terminal, WELL.encode()).decode() == WELL + "\x1b[0m"


def test_what_a_log_hides_is_not_hidden_after_it() -> None:
    assert printed(Terminal, b"\x1b[8mhidden", b"\x1b[3").decode() == "\x1b[8mhidden\N{REPLACEMENT CHARACTER}\x1b[0m"
    assert printed(Terminal, b"cut \xe2\x82").decode() == "cut \N{REPLACEMENT CHARACTER}"


def test_the_terminal_is_as_it_was_also_where_the_reader_ends_the_log() -> None:
    def ended():
        yield b"\x1b[8mhidden"
        raise KeyboardInterrupt

    raw = io.BytesIO()
    file = Terminal(raw, encoding="utf-8")
    with pytest.raises(KeyboardInterrupt):
        Screen(Console(file=file), Console(file=file)).log(ended())
    assert raw.getvalue().endswith(b"\x1b[0m")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_is_not_utf_8_gets_what_it_can_show(encoding: str) -> None:
    assert printed(Terminal, b"loss 0.5 \xe2\x82\xac \x07\n", encoding=encoding) == b"loss 0.5 ? ?\n"


def test_a_file_gets_a_log_as_it_was_written() -> None:
    assert printed(io.TextIOWrapper, TEXT) == TEXT


@given(st.lists(st.integers(0, len(TEXT)), max_size=6))
def test_it_does_not_matter_where_a_log_is_cut_through(cuts: list[int]) -> None:
    at = [0, *sorted(cuts), len(TEXT)]
    tame = Tame()
    parts = [tame.feed(TEXT[begin:end]) for begin, end in zip(at, at[1:], strict=False)]
    assert "".join(parts) == Tame().feed(TEXT)
