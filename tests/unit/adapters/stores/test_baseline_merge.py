from __future__ import annotations

from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores.baseline_merge import merge_files, textual_conflict
from pytest_perfgate.adapters.stores.baseline_text import parse_entries
from pytest_perfgate.model.errors import PerfgateError

HEAD = "# ours to review\nperfgate: 1\nbaselines:\n"
A, B = "  'a': {time: 1.0000us}\n", "  'b': {time: 2.0000us}\n"
SLOW = "  'a': {time: 9.0000us, detects: 40.0%, why: \"exact\"}\n"


def merged(folder: Path, base: str, ours: str, theirs: str) -> tuple[str, dict[str, str]]:
    """The text, and what was in conflict; the same from the other side."""
    results = []
    for mine, other in ((ours, theirs), (theirs, ours)):
        paths = [folder / name for name in "OAB"]
        for path, text in zip(paths, (base, mine, other)):
            path.write_text(text, encoding="utf-8")
        conflicts = merge_files(*paths, "b.yaml")
        results.append((paths[1].read_text(encoding="utf-8"), dict(conflicts)))
    (text, clashes), (again, mirrored) = results
    assert clashes.keys() == mirrored.keys()
    assert clashes or text == again
    return text, clashes


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        (HEAD + A + B, HEAD + SLOW + B, f"# new head\n{HEAD}{A}{B}", f"# new head\n{HEAD}{SLOW}{B}"),
        (HEAD + A + B, HEAD + A + B + "# the end\n", HEAD + SLOW + B, HEAD + SLOW + B + "# the end\n"),
        (HEAD + A + B, HEAD + A + "# of b\n\n" + B, HEAD + SLOW + B, HEAD + SLOW + "# of b\n\n" + B),
        (HEAD + A + B, HEAD + "# of a\n" + A + B, HEAD + SLOW + B, HEAD + "# of a\n" + SLOW + B),
        (HEAD + "  # of a\n" + A + B, HEAD + B, HEAD + "  # of a\n" + A + B, HEAD + B),
        (HEAD + A + B, HEAD + SLOW[:-2] + " # behind\n" + B, HEAD + A, HEAD + SLOW[:-2] + " # behind\n"),
        ("", HEAD + A, HEAD + B, HEAD + A + B),
        (HEAD + A + B, HEAD + A, HEAD + B, HEAD),
        (HEAD + A, HEAD + A + B, HEAD + A + B, HEAD + A + B),
    ],
)
def test_what_one_side_changed_is_taken_with_its_comments(
    tmp_path: Path, base: str, ours: str, theirs: str, expected: str
) -> None:
    expected = expected.replace('"exact" # behind', '"exact"} # behind')
    text, conflicts = merged(
        tmp_path, *(part.replace('"exact" # behind', '"exact"} # behind') for part in (base, ours, theirs))
    )
    assert (text, conflicts) == (expected, {})
    detects = {name: entry.fields.get("detects") for name, entry in parse_entries(text, place="", device="d").items()}
    assert detects.get("a") == (0.4 if SLOW[:20] in text else None)


@pytest.mark.parametrize(
    ("ours", "theirs", "name", "message"),
    [
        (SLOW + B, A.replace("1.0", "3.0") + B, "a", "ours and theirs accepted it differently"),
        (B, SLOW + B, "a", "ours removed it, theirs accepted it anew"),
        (SLOW + B, B, "a", "ours accepted it anew, theirs removed it"),
        ("# one\n" + A + B, "# two\n" + A + B, "a", "ours and theirs wrote different comments above it"),
        (A + B + "# one\n", A + B + "# two\n", "the comments around the lines", "ours and theirs differ"),
    ],
)
def test_what_both_changed_is_said_as_what_it_is(
    tmp_path: Path, ours: str, theirs: str, name: str, message: str
) -> None:
    text, _ = merged(tmp_path, HEAD + A + B, HEAD + theirs, HEAD + ours)
    assert text.count("<<<<<<< ours") == 1
    for path, body in zip("OAB", (A + B, ours, theirs)):
        (tmp_path / path).write_text(HEAD + body)
    assert dict(merge_files(*(tmp_path / path for path in "OAB"), "")) == {name: message}


@pytest.mark.parametrize(
    "theirs",
    [
        HEAD + A + "  'b': {time: 1",
        HEAD.replace("1", "2") + A + B,
        HEAD + A + A,
        "more: 1\n" + HEAD + A + B,
        "perfgate: 1\nbaselines: {'a': {time: 1us}, 'b': {time: 2us}, 'c': {time: 3us}}\n",
    ],
)
def test_a_side_that_cannot_be_merged_leaves_both_between_markers(tmp_path: Path, theirs: str) -> None:
    paths = [tmp_path / name for name in "OAB"]
    for path, text in zip(paths, (HEAD + A + B, HEAD + SLOW + B, theirs)):
        path.write_text(text)
    with pytest.raises(PerfgateError, match="both sides between markers"):
        merge_files(*paths, "b.yaml")
    text = paths[1].read_text()
    assert "<<<<<<< ours" in text
    assert '"exact"' in text
    assert all(line in text for line in theirs.split("\n"))


def test_without_git_both_sides_stand_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    ours, theirs = tmp_path / "A", tmp_path / "B"
    ours.write_bytes(b"\xff ours")
    theirs.write_bytes(b"theirs\n")
    expected = b"<<<<<<< ours\n\xff ours\n=======\ntheirs\n>>>>>>> theirs\n"
    assert textual_conflict(ours, ours, theirs) == expected
    assert textual_conflict(ours, ours, tmp_path / "missing") is None
    with pytest.raises(PerfgateError, match="nothing was changed"):
        merge_files(ours, ours, tmp_path / "missing", "")


def test_a_file_with_windows_line_ends_keeps_them(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "OAB"]
    for path, text in zip(paths, (HEAD + A, HEAD + A + B, HEAD + SLOW)):
        path.write_bytes(text.replace("\n", "\r\n").encode())
    assert merge_files(*paths, "b.yaml") == ()
    assert paths[1].read_bytes() == (HEAD + SLOW + B).replace("\n", "\r\n").encode()
