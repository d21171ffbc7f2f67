"""Columns that several views share."""

from __future__ import annotations

from pytest_perfgate.model.document import Column
from pytest_perfgate.model.quantity import Dimension


def text(name: str) -> Column:
    return Column(name=name)


def ns(name: str) -> Column:
    """Nanoseconds as bare integers: what people sort and paste."""
    return Column(name=name, dimension=Dimension.TIME, unit="ns")


def time(name: str) -> Column:
    return Column(name=name, dimension=Dimension.TIME)


def part(name: str) -> Column:
    return Column(name=name, dimension=Dimension.FRACTION)


def count(name: str) -> Column:
    return Column(name=name, dimension=Dimension.COUNT)
