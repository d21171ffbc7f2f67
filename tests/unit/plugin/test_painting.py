"""What an outcome looks like where there are colours, and that nothing is added where there are none."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from _pytest._io import TerminalWriter

from pytest_perfgate.plugin.reporting import write_painted


def painted(line: str, *, colours: bool) -> str:
    writer = TerminalWriter(io.StringIO())
    writer.hasmarkup = colours
    write_painted(SimpleNamespace(write=writer.write, write_line=writer.line), line)
    return writer._file.getvalue()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("regressed  test_a", "\x1b[31mregressed\x1b[0m  test_a\n"),
        ("NOT MEASURED  test_a  time", "\x1b[33mNOT MEASURED\x1b[0m  test_a  time\n"),
        ("next  perfgate report", "\x1b[1mnext\x1b[0m  perfgate report\n"),
        ("  why   it is slower", "  why   it is slower\n"),
        ("not applicable  test_a", "not applicable  test_a\n"),
    ],
)
def test_the_first_word_alone_is_coloured(line: str, shown: str) -> None:
    assert painted(line, colours=True) == shown
    assert painted(line, colours=False) == f"{line}\n"
