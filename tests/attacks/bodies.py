"""Bodies nobody means well with, by what is wrong with them; each is read by every door that takes its kind."""

import json

DEEP = 50_000
YAML: dict[str, bytes] = {
    "brackets": b"[" * DEEP,
    "braces": b"{a: " * DEEP,
    "steps": b"- " * DEEP,
    "a truth that is none": b"a: !!bool zzz",
    "a time that is none": b"a: !!timestamp zzz",
    "no number": b'a: !!int ""',
    "no decimal": b'a: !!float ""',
    "sixtieths": b"a: " + b"1:" * 300 + b"1.5",
    "many sixtieths": b"a: " + b"1:" * 80_000 + b"1",
    "bytes": b"a: !!binary '!'",
    "a set": b"a: !!set {b, c}",
    "a program": b"a: !!python/object/apply:os.system [id]",
    "an alias": b"a: &a [x]\nb: *b",
    "a loop": b"a: &a [*a]",
    "laughs": b"a: &a [x,x,x,x,x,x,x,x]\n"
    + b"".join(b"b%d: &a [%s]\n" % (i, b",".join([b"*a"] * 9)) for i in range(12)),
    "a list for a key": b"? [a]\n: b",
    "directives": b"".join(b"%%TAG !a%d! b:\n" % i for i in range(20_000)) + b"---\na: b",
    "infinity": b"a: .inf",
    "a zero byte": b'a: "\\0"',
    "half a character": b'a: "\\ud800"',
    "a merge of a text": b"<<: x",
    "a number of 5,000 digits": b"a: " + b"9" * 5000,
    "many values": b"a: [" + b"1," * 250_000 + b"1]",
    "Latin-1": "a: \u00fc".encode("latin-1"),
    "UTF-16": "a: b".encode("utf-16"),
    "tabs": b"a:\n\t- b",
    "nothing closed": b'a: "b',
}
JSON: dict[str, bytes] = {
    "brackets": b"[" * 100_000,
    "objects": b'{"a":' * DEEP,
    "closed brackets": b"[" * 5000 + b"]" * 5000,
    "objects of names": b'{"metadata":' * 5000 + b"1" + b"}" * 5000,
    "many values": b"[" + b"1," * 250_000 + b"1]",
    "half a character": b'{"name":"\\ud800","namespace":"\\ud800","metadata":{"name":"\\ud800"}}',
    "half a character for a key": b'{"\\udfff":1}',
    "a zero byte": b'{"name":"\\u0000","metadata":{"name":"\\u0000"}}',
    "a number of 5,000 digits": b'{"a":' + b"9" * 5000 + b"}",
    "infinity": b'{"a":1e999}',
    "not a number": b'{"a":NaN}',
    "a list": b"[1]",
    "a text": b'"text"',
    "nothing": b"null",
    "broken": b'{"a":',
    "Latin-1": b'{"a":"\xfc"}',
    "quotes": b'"' * DEEP,
    "two": b"{} {}",
}
VALUES = [
    None,
    True,
    0,
    -1,
    2**63,
    1.5,
    "",
    "x" * 300,
    "²",
    "a/../b",
    "\n",
    [],
    [[]],
    {},
    {"a": {}},
    ["\u0661"],
    "１２",
]
"""Of the wrong type, or the right type and no sense; put where something else is expected."""


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()
