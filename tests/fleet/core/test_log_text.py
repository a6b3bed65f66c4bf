"""What is kept of a log, and what a reader gets of it, against a log that was never cut."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from fleet.core.members.log_text import Selection, last_bytes, select

LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=20), max_size=30)
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def stamped(lines: list[str]) -> bytes:
    """Each line with the time of its second, as a kubelet writes it."""
    times = [(BEGUN + timedelta(seconds=at)).strftime("%Y-%m-%dT%H:%M:%S.123456789Z") for at in range(len(lines))]
    return b"".join(f"{time} {line}\n".encode() for time, line in zip(times, lines, strict=True))


@given(LINES, st.integers(1, 200), st.integers(1, 40))
def test_the_end_of_a_log_is_kept_in_whole_lines_and_within_bounds(lines, most, size):
    text = "".join(f"{line}\n" for line in lines).encode()
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    kept, is_cut = last_bytes(chunks, most, 10**6)
    assert text.endswith(kept) and len(kept) <= most and is_cut == (kept != text)
    assert not is_cut or text[: -len(kept)].endswith(b"\n") or b"\n" not in kept[:-1]


def test_an_answer_that_is_too_large_is_given_up():
    assert last_bytes((b"x" * 100 for _ in range(10)), 50, 999) is None
    assert last_bytes((b"x" * 100 for _ in range(10)), 50, 1000) == (b"x" * 50, True)


@given(LINES, st.one_of(st.none(), st.integers(0, 40)), st.integers(0, 40))
def test_it_shows_the_last_lines_since_a_time_without_the_times(lines, tail, since):
    expected = lines[since:]
    expected = expected if tail is None else expected[len(expected) - min(tail, len(expected)) :]
    wanted = Selection(tail_lines=tail, since=BEGUN + timedelta(seconds=since))
    assert select(stamped(lines), wanted).decode() == "".join(f"{line}\n" for line in expected)


@given(LINES, st.integers(0, 50))
def test_with_times_and_a_limit_it_is_the_beginning_of_what_was_kept(lines, limit):
    text = stamped(lines)
    assert select(text, Selection(timestamps=True)) == text
    assert select(text, Selection(timestamps=True, limit_bytes=limit)) == text[:limit]


def test_only_one_time_is_taken_off_a_line_that_begins_with_a_time_itself():
    assert select(b"2026-01-01T00:00:00Z 2025-01-01T00:00:00Z hello\n", Selection()) == b"2025-01-01T00:00:00Z hello\n"


def test_lines_without_a_time_are_shown_as_they_are():
    assert select(b"plain\n", Selection(tail_lines=1)) == b"plain\n"


def test_a_progress_bar_is_one_line():
    text = b"begin\n" + b"\r".join(b"%d of 9" % n for n in range(10)) + b"\nend\n"
    assert select(text, Selection(tail_lines=2)) == text.removeprefix(b"begin\n")
