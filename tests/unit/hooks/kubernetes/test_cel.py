"""Expressions that select devices."""

from __future__ import annotations

import pytest

from peakgate.hooks.kubernetes.cel import Condition, conditions_of

CAPACITY, ATTRIBUTE = "device.capacity['gpu.nvidia.com'].memory", "device.attributes['gpu.nvidia.com'].productName"
GIBIBYTE = 1 << 30


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        (f"{CAPACITY}.compareTo(quantity('40Gi')) >= 0", [Condition(name="memory", least=40 * GIBIBYTE)]),
        (f'{CAPACITY}\n  .isGreaterThan(quantity("40Gi"))\n', [Condition(name="memory", least=40 * GIBIBYTE + 1)]),
        (f"{CAPACITY}.isLessThan(quantity('40Gi'))", [Condition(name="memory", most=40 * GIBIBYTE - 1)]),
        (f"{CAPACITY} == quantity('80Gi')", [Condition(name="memory", least=80 * GIBIBYTE, most=80 * GIBIBYTE)]),
        (
            "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'",
            [Condition(name="type", texts=("gpu",))],
        ),
        (f"{ATTRIBUTE} in ['H200_SXM_141GB', 'B200']", [Condition(name="productName", texts=("H200_SXM_141GB", "B200"))]),
        (f"{ATTRIBUTE}.lowerAscii().matches('^.*a100.*$')", [Condition(name="productName", part="a100")]),
        (
            "device.attributes['gpu.nvidia.com'].profile == '4g.40gb' || device.attributes['gpu.nvidia.com'].profile == '3g.40gb'",
            [Condition(name="profile", texts=("4g.40gb", "3g.40gb"))],
        ),
        (
            f"({ATTRIBUTE}.matches('H100') && ({CAPACITY}.compareTo(quantity('79Gi')) >= 0))",
            [Condition(name="productName", part="H100"), Condition(name="memory", least=79 * GIBIBYTE)],
        ),
        (f"{ATTRIBUTE} == 'a && b'", [Condition(name="productName", texts=("a && b",))]),
        (f"!({ATTRIBUTE} == 'H100')", []),
        (f"{ATTRIBUTE} == 'H100' || {CAPACITY}.isGreaterThan(quantity('1Gi'))", []),
        (f"{ATTRIBUTE}.matches('(a+)+$')", []),
        ("cel.bind(dra, device.attributes['x'], dra.y > 3)", []),
        (")(" * 5000, []),
        ("", []),
    ],
)
def test_common_forms_are_read_and_others_left_out(expression: str, want: list[Condition]) -> None:
    """A part that is not read narrows the choice further, so that what is left allows too much and never too little."""
    assert conditions_of(expression) == want
