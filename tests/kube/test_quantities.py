"""Quantities against an oracle of exact decimals, and the absurd ones that are refused."""

from decimal import ROUND_CEILING, Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.kube import quantities
from fleet.kube.quantities import MAX, QuantityError

FACTORS = {
    "": Decimal(1),
    **{s: Decimal(10) ** e for s, e in {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15}.items()},
    **{s: Decimal(2) ** e for s, e in {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50}.items()},
}
DIGITS = st.integers(0, 999).map(str) | st.tuples(st.integers(0, 999), st.integers(0, 99999)).map(
    "{0[0]}.{0[1]}".format
)


@given(DIGITS, st.sampled_from(sorted(FACTORS)))
def test_it_agrees_with_exact_decimals(digits: str, suffix: str) -> None:
    with localcontext() as exact:
        exact.prec = 100
        expected = Decimal(digits) * FACTORS[suffix]
        assert quantities.parse(digits + suffix) == expected
        assert quantities.units(digits + suffix) == int(expected.to_integral_value(ROUND_CEILING))


@given(st.integers(0, 99), st.integers(-12, 12))
def test_it_reads_exponents(number: int, exponent: int) -> None:
    assert quantities.parse(f"{number}e{exponent}") == quantities.parse(f"{number}E{exponent:+d}")
    assert quantities.parse(f"{number}e{exponent}") == Decimal(number).scaleb(exponent)


@given(st.integers(0, MAX // 1000))
def test_it_writes_thousandths_it_reads_back(amount: int) -> None:
    assert quantities.milli(quantities.from_milli(amount)) == amount


@given(st.integers(0, MAX))
def test_it_writes_bytes_it_reads_back(amount: int) -> None:
    assert quantities.units(quantities.from_bytes(amount)) == amount


@given(st.text(max_size=80) | st.floats() | st.none() | st.booleans() | st.lists(st.integers()))
def test_it_reads_or_refuses_and_nothing_else(value: object) -> None:
    try:
        assert 0 <= quantities.units(value) <= MAX
    except QuantityError as e:
        assert len(str(e)) < 120


@pytest.mark.parametrize(
    "value",
    ["1e400", "1e9999", "1e-400x", "NaN", "inf", float("nan"), float("inf"), "9" * 65, "0" * 10_000, "1e99999"]
    + ["", " 1", "1 ", "1\n", "--1", "1KI", "1mi", "0x10", "1,5", "١", None, True, [], {}],
)
def test_it_refuses_what_is_no_amount(value: object) -> None:
    with pytest.raises(QuantityError):
        quantities.units(value)


@pytest.mark.parametrize("value", ["-1", "-1m", -5, "-1e3"])
def test_it_refuses_less_than_nothing(value: object) -> None:
    with pytest.raises(QuantityError, match="negative"):
        quantities.units(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1n", 1), ("0.1", 1), ("1e-400", 1), ("0e-400", 0), (str(MAX), MAX), (2, 2), (1.5, 2), (".5", 1), ("5.", 5)],
)
def test_it_rounds_up_to_whole_units(value: object, expected: int) -> None:
    assert quantities.units(value) == expected
