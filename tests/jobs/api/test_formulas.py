"""No cell of an export is a formula to a spreadsheet, whoever named what it holds."""

import pytest

from jobs.api.export import plain


@pytest.mark.parametrize("blank", ["", " ", "\t", "\r", "\n", "\u00a0", "\u3000 "])
@pytest.mark.parametrize("sign", "=+-@\uff1d\uff0b\uff0d\uff20")
def test_a_formula_is_text(blank: str, sign: str) -> None:
    assert plain(f"{blank}{sign}cmd|x") == f"'{blank}{sign}cmd|x"


@pytest.mark.parametrize("cell", ["", "a=b", "llama-1", -1, 2.5, None, True])
def test_what_is_none_stays(cell: object) -> None:
    assert plain(cell) == cell
