"""A stream of a member is cut into lines in one pass, whatever its pieces, and a line without an end fills no memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.member import reading


class Response:
    def __init__(self, chunks):
        self.chunks = iter(chunks)

    def read1(self, _):
        return next(self.chunks, b"")


def lines(*chunks):
    return list(reading.lines(Response(chunks)))


@given(st.lists(st.text("ab\n", min_size=1).map(str.encode)))
def test_lines_are_those_of_the_whole_text(chunks):
    text = b"".join(chunks)
    assert lines(*chunks) == (text.split(b"\n")[:-1] if text.endswith(b"\n") else text.split(b"\n") if text else [])


@pytest.mark.parametrize("size", [1, 7, 40])
def test_a_line_without_an_end_comes_in_pieces(monkeypatch, size):
    monkeypatch.setattr(reading, "LONGEST_LINE", 100)
    found = lines(*[b"x" * size] * 100, b"\n", b"next\n")
    assert b"".join(found) == b"x" * size * 100 + b"next" and found[-1] == b"next"
    assert max(map(len, found)) < 100 + size
