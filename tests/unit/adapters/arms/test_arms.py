"""Tests of adapters/arms: the hash by which the files of two builds are compared, and the setting of a workspace."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from pytest_perfgate.adapters.arms import hidden_projects
from pytest_perfgate.adapters.arms.overlay import content_of, sources_of


def library(*sections: tuple[str, bytes], tail: bytes = b"") -> bytes:
    """Return a shared library of 64-bit ELF with these sections, and data behind it; a debugger's are not loaded."""
    names = b"\0" + b"".join(f"{name}\0".encode() for name in (*dict(sections), ".shstrtab"))
    contents = [("", b""), *sorted(sections, key=lambda one: one[0] in APART), (".shstrtab", names)]
    headers, body, loaded = b"", b"", 0
    for name, content in contents:
        place, apart = names.index(f"{name}\0".encode()), name in {*APART, ".shstrtab"}
        headers += struct.pack("<IIQQQQIIQQ", place, 1, 0 if apart else 2, 0, 120 + len(body), len(content), 0, 0, 1, 0)
        body += content
        loaded = loaded if apart else 120 + len(body)
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    fields = (3, 62, 1, 0, 64, 120 + len(body), 0, 64, 56, 1, 64, len(contents), len(contents) - 1)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, loaded, loaded, 4096)
    return ident + struct.pack("<HHIQQQIHHHHHH", *fields) + segment + body + headers + tail


APART = (".debug_str", ".debug_line", ".symtab", ".extra")
BUILT = {".note.gnu.build-id": b"GNU 1234", ".text": b"add mul", ".rodata": b"k.c", ".debug_str": b"/tmp/base/k.c"}


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (library(*BUILT.items()), True),
        (library(*(BUILT | {".note.gnu.build-id": b"GNU 5678", ".debug_str": b"/tmp/of_the_head/k.c"}).items()), True),
        (library(*BUILT.items(), (".debug_line", b"7 8 9"), (".symtab", b"add")), True),
        (library(*(BUILT | {".text": b"add sub"}).items()), False),
        (library(*(BUILT | {".rodata": b"k2.c"}).items()), False),
        (library(*BUILT.items(), (".extra", b"a table that the program reads")), False),
        (library(*BUILT.items(), tail=b"PK: an archive that the program reads"), False),
        (library(*BUILT.items())[:-70], False),
        (library(*BUILT.items())[:40], False),
        (b"\x7fELF\x02\x01" + b"\xff" * 90, False),
        (library(*BUILT.items()).replace(struct.pack("<Q", 7), struct.pack("<Q", 1 << 63)), False),
    ],
    ids=[
        "equal",
        "folder",
        "symbols",
        "code",
        "data",
        "extra",
        "archive",
        "cut",
        "cut in the head",
        "damaged",
        "endless",
    ],
)
def test_two_builds_of_a_library_are_the_same_code_if_only_a_debugger_sees_a_difference(
    tmp_path: Path, other: bytes, same: bool
) -> None:
    """Each is built in a folder of its own, which -g writes into it: rounds would compare equal code."""
    (tmp_path / "k.so").write_bytes(library(*BUILT.items()))
    first = (content_of(tmp_path), list(sources_of(tmp_path).values()))
    (tmp_path / "k.so").write_bytes(other)
    assert ((content_of(tmp_path), list(sources_of(tmp_path).values())) == first) is same


@pytest.mark.parametrize(
    ("installed", "projects", "setting"),
    [
        ({".": True, "packages/kern": True}, (), '[".", "packages/kern"]'),
        (
            {"packages/app": True, "packages/kern": True},
            (),
            '["packages/app", "packages/kern"]',
        ),  # no package at the root
        ({".": False, "packages/kern": True}, (), '[".", "packages/kern"]'),
        ({"packages/kern": True}, ("packages/app",), '["packages/app", "packages/kern"]'),
        ({".": True, "packages/kern": True}, (".", "packages/kern"), ""),
        ({".": True, "packages/kern": True}, (".", "./packages/kern/"), ""),
        ({".": True}, (), ""),
        ({".": True, "packages/kern": False}, (), ""),  # a copy, which both builds load
        ({".": True, "../apart": True}, (), ""),
    ],
)
def test_the_setting_names_all_editable_packages_of_a_workspace(
    tmp_path: Path, installed: dict[str, bool], projects: tuple[str, ...], setting: str
) -> None:
    root, site = tmp_path / "a b", tmp_path / "site"
    for at, (place, editable) in enumerate(installed.items()):
        url = {"url": (root / place).resolve().as_uri(), "dir_info": {"editable": True} if editable else {}}
        info = site / f"k{at}-1.dist-info"
        info.mkdir(parents=True)
        info.joinpath("direct_url.json").write_text(json.dumps(url, separators=(",", ":") if at else None))
    (root / ".git").mkdir(parents=True)
    (site / "plain-1.dist-info").mkdir()
    expected = f"set projects = {setting} in [tool.perfgate]" if setting else ""
    assert hidden_projects(root, projects, [str(site), str(tmp_path / "none")]) == expected
