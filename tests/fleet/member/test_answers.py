"""What a member says, without what no database takes."""

import json

import pytest

from fleet.member import answers

INSTEAD = "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("said", "read"),
    [
        (b'"a\\u0000b"', f"a{INSTEAD}b"),
        (b'"a\\ud800b"', f"a{INSTEAD}b"),
        (b'"\\uDFFF"', INSTEAD),
        (b'"\xed\xa0\x80"', INSTEAD),
        (b'{"\\u0000": ["\\u0000", 1, null]}', {INSTEAD: [INSTEAD, 1, None]}),
        (b'"\\ud83d\\ude00 \\\\u0000"', "\N{GRINNING FACE} \\u0000"),
    ],
)
def test_it_replaces_what_cannot_be_stored_and_nothing_else(said, read):
    assert answers.parse(said) == read
    json.dumps(answers.parse(said), ensure_ascii=False).encode()


def test_it_refuses_what_is_nested_too_deep():
    with pytest.raises(ValueError, match="too deep"):
        answers.parse(b"[" * 100_000)
