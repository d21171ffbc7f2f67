"""Tests of work, the public names."""

from __future__ import annotations

import pytest

from pytest_perfgate import work


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("matmul", "did you mean 'gemm'?"),
        ("bytes", "did you mean 'custom(bytes=...)'?"),
        ("conv2d", "did you mean 'conv'"),
        ("moe", "'fused_moe'"),
        ("zzz", "it has: Work, attention, "),
    ],
)
def test_an_unknown_function_names_the_one_that_is_meant(name: str, fix: str) -> None:
    with pytest.raises(AttributeError, match=rf"^work has no '{name}'; ") as error:
        getattr(work, name)
    assert fix in str(error.value)


def test_other_names_lead_to_functions() -> None:
    assert {name: hasattr(work, other.partition("(")[0]) for name, other in work._OTHER_NAMES.items()} == dict.fromkeys(
        work._OTHER_NAMES, True
    )
    assert not set(work._OTHER_NAMES) & set(work.__all__)
