"""The one reader of what strangers send: what it takes, what it refuses and where, and that its work grows with the text."""

import gc
import json
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.kube.requests import reader
from fleet.kube.requests.reader import MAX_DEPTH, MAX_VALUES, Excessive, Unreadable
from tests.support.examples import examples

PLAIN = {
    "yes": True, "off": False, "~": None, "": None, "null": None, "y": "y", "0644": 420, "08": "08", "1_000": 1000,
    "0x1f": 31, "0b11": 3, "-7": -7, "1.5": 1.5, "1.5e+3": 1500.0, "1e3": "1e3", "12:30": "12:30", "1:1:1.5": "1:1:1.5",
    "2026-01-01": "2026-01-01", "1.2.3": "1.2.3", "+": "+", "'5'": "5", '"yes"': "yes", "!!str 5": "5",
    "!!int 5": 5, "!!float 5": 5, "!!bool no": False, "!!map {}": {}, "!!seq []": [],
}  # fmt: skip
REFUSED = {
    "!!bool zzz": "is no bool", "!!int ''": "is no int", "!!float ''": "is no float", "!!timestamp zzz": "is not taken",
    "!!binary aGk=": "is not taken", "!!python/object x": "is not taken", "!own x": "is not taken", "!!set {}": "not taken",
    ".inf": "no number JSON has", ".nan": "no number JSON has", "9" * 5000: "no number that can be read",
    '"\\0"': "zero byte", "&x 1": "anchors", "*x": "anchors", "{? [a] : b}": "a key must be a text", "{5: x}": "in quotes",
}  # fmt: skip


@pytest.mark.parametrize("text", PLAIN)
def test_it_reads_words_and_numbers_as_kubernetes_does(text: str) -> None:
    assert reader.read_yaml(f"a: {text}") == [{"a": PLAIN[text]}]


@pytest.mark.parametrize("text", REFUSED)
def test_it_says_what_it_does_not_take_and_where(text: str) -> None:
    with pytest.raises(Unreadable) as refused:
        reader.read_yaml(f"a: b\nc: {text}")
    assert REFUSED[text] in refused.value.problem and refused.value.line == 2


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"a": NaN}', "[1e999]", '["\\ud800"]', '{"\\udc00": 1}', '["\\u0000"]', "9" * 5000, "\ufeff{}", "{} {}"],
)
def test_it_refuses_what_is_no_json(text: str) -> None:
    with pytest.raises(Unreadable):
        reader.read_json(text)


def test_it_takes_characters_that_json_writes_in_two_halves() -> None:
    assert reader.read_json('["\\ud83d\\ude00", "\\\\ud800", "\\\\u0000"]') == ["\U0001f600", "\\ud800", "\\u0000"]


def test_it_counts_an_alias_as_what_it_stands_for() -> None:
    def read(text: str) -> list:
        return reader.read_yaml(text, aliases=True)

    assert read("a: &a {x: [1]}\nb: *a\nc: {<<: *a, y: 2}") == [
        {"a": {"x": [1]}, "b": {"x": [1]}, "c": {"x": [1], "y": 2}}
    ]
    assert read("a: &a [1]\n---\na: b") == [{"a": [1]}, {"a": "b"}]
    for bomb in (
        "a: &a [x, x, x, x, x, x, x, x]\n" + "\n".join(f"b{i}: &a [{', '.join(['*a'] * 8)}]" for i in range(9)),
        "a: &a [x]\n" + "\n".join(f"b{i}: &a [*a]" for i in range(MAX_DEPTH)),
    ):
        with pytest.raises(Excessive):
            read(bomb)
    for broken in ("a: &a [*a]", "a: *b", "a: &a 1\n---\nb: *a", "<<: 5"):
        with pytest.raises(Unreadable):
            read(broken)


@pytest.mark.parametrize("read", [reader.read_json, reader.read_yaml])
def test_it_bounds_depth_and_number_before_it_builds(read: Callable[[str], object]) -> None:
    assert read("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    for text in (
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        "[" * 40_000,
        '{"a":' * 50_000,
        "[" + "1," * MAX_VALUES + "1]",
        "[" + "[]," * MAX_VALUES + "1]",
    ):
        with pytest.raises(Excessive):
            read(text)


def test_it_counts_no_brackets_within_texts() -> None:
    text = json.dumps(["[" * 1000, '\\"' + "{" * 1000, "\\" * 7, ',"' * 1000])
    assert reader.read_json(text) == json.loads(text)


GROWING: dict[str, Callable[[int], str]] = {
    "lists": lambda n: "[" * n, "objects": lambda n: '{"a":' * n, "steps": lambda n: "- " * n, "questions": lambda n: "? " * n,
    "values": lambda n: "[" + "1," * n + "1]", "texts": lambda n: '"' * n, "escapes": lambda n: '"' + '\\"' * n,
    "keys": lambda n: "{" + "".join(f'"k{i}":1,' for i in range(n)) + '"k":1}', "backslashes": lambda n: '"' + "\\" * n,
    "words": lambda n: "a: " + "b " * n, "lines": lambda n: "a: b\n" + " c\n" * n, "blanks": lambda n: "a:" + " " * n + "b",
    "sexagesimal": lambda n: "a: " + "1:" * n + "1", "digits": lambda n: "a: " + "9" * n, "comments": lambda n: "#\n" * n,
    "tags": lambda n: "".join(f"%TAG !a{i}! b:\n" for i in range(n)) + "---\na: b", "documents": lambda n: "---\n" * n,
    "anchors": lambda n: "".join(f"- &a{i} x\n" for i in range(n)), "colons": lambda n: ":" * n,
    "commas": lambda n: "[" + "," * n, "literal": lambda n: "a: |\n" + " b\n" * n,
    "merges": lambda n: "a: &a {x: 1}\n" + "".join(f"b{i}: {{<<: *a}}\n" for i in range(n)),
}  # fmt: skip


def seconds(read: Callable[[str], object], text: str) -> float:
    """Of this process's own time, without what the collector does for the tests before."""
    gc.disable()
    try:
        began = time.process_time()
        with suppress(Unreadable):
            read(text)
        return time.process_time() - began
    finally:
        gc.enable()


def grows_as_its_text(read: Callable[[str], object], shape: str) -> bool:
    """Whether four times the text takes at most six times as long, by the least of up to 25 readings of each.

    A busy machine makes single readings longer; quadratic work takes sixteen times as long in all of them.
    """
    texts = [GROWING[shape](n) for n in (8_000, 32_000)]
    small, large = float("inf"), float("inf")
    for _ in range(25):
        small, large = min(small, seconds(read, texts[0])), min(large, seconds(read, texts[1]))
        if large < max(small * 6, 0.05):
            return True
    return False


@pytest.mark.parametrize("shape", GROWING)
def test_its_work_grows_with_the_text_and_no_faster(shape: str) -> None:
    for read in (reader.read_json, lambda text: reader.read_yaml(text, aliases=True)):
        assert grows_as_its_text(read, shape)


@settings(max_examples=examples(200), deadline=None)
@given(st.text(max_size=60) | st.text("{}[]:,-&*!?|>'\"#%@` \n\tab01.<~", max_size=40), st.booleans())
def test_it_reads_anything_or_says_why_not(text: str, aliases: bool) -> None:
    for read in (lambda: reader.read_json(text), lambda: reader.read_yaml(text, aliases=aliases)):
        try:
            json.dumps(read(), allow_nan=False).encode()
        except Unreadable as e:
            assert e.problem


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
numbers = st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
documents = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=examples(100), deadline=None)
@given(documents)
def test_it_reads_back_what_a_stock_writer_wrote(value: object) -> None:
    assert reader.read_json(json.dumps(value)) == value
    assert reader.read_yaml(yaml.safe_dump(value)) == [value]
