from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.api.quantity import InvalidQuantity, Notation, Quantity, format_quantity, parse_quantity


@pytest.mark.parametrize(
    ("text", "value", "canonical"),
    [
        ("0", 0, "0"),
        (0, 0, "0"),
        (2, 2, "2"),
        (0.5, Fraction(1, 2), "500m"),
        ("1.5", Fraction(3, 2), "1500m"),
        (".5", Fraction(1, 2), "500m"),
        ("5.", 5, "5"),
        ("1000m", 1, "1"),
        ("4500m", Fraction(9, 2), "4500m"),
        ("1500k", 1_500_000, "1500k"),
        ("1000k", 1_000_000, "1M"),
        ("1E", 10**18, "1E"),
        ("1e3", 1000, "1e3"),
        ("12E2", 1200, "1200"),
        ("1e-3", Fraction(1, 1000), "1e-3"),
        ("1Ki", 1024, "1Ki"),
        ("1024Mi", 1024**3, "1Gi"),
        ("1.5Gi", 3 * 2**29, "1536Mi"),
        ("0.5Ki", 512, "512"),
        ("0.1Mi", Fraction(1024 * 1024, 10), "104857600m"),
        ("1.0000000001", Fraction(1_000_000_001, 10**9), "1000000001n"),
        ("9223372036854775808", 2**63 - 1, "9223372036854775807"),
        ("-2Ki", -2048, "-2Ki"),
        ("+3", 3, "3"),
    ],
)
def test_quantities_read_and_print_as_the_api_server_does(
    text: str | int | float, value: Fraction | int, canonical: str
) -> None:
    assert parse_quantity(text) == value
    assert str(Quantity.of(text)) == canonical


@pytest.mark.parametrize(
    "text", ["", ".", "-", "1 Gi", "1gi", "1Kib", "1e", "1.2.3", "cpu", "1K", "٣", True, "9" * 101]
)
def test_what_is_no_quantity_is_refused_with_an_example(text: str | bool) -> None:
    with pytest.raises(InvalidQuantity, match=r"1\.5Gi"):
        parse_quantity(text)


def test_a_sum_keeps_the_notation_of_its_first_part_that_is_not_zero() -> None:
    assert str(Quantity() + Quantity.of("1Gi") + Quantity.of("1M")) == "1074741824"
    assert str(Quantity.of("1Gi") + Quantity.of("1024k")) == "1049576Ki"
    assert str(Quantity() + Quantity.of("512Mi") + Quantity.of("536870912")) == "1Gi"
    assert str(Quantity.of("1088Mi") * 2) == "2176Mi"


@given(
    st.integers(-(2**62), 2**62).map(lambda nanos: Fraction(nanos, 10**9)),
    st.sampled_from(Notation),
)
def test_what_is_printed_reads_as_the_same_amount(value: Fraction, notation: Notation) -> None:
    assert parse_quantity(format_quantity(value, notation)) == value
