"""What ``perfgate.attach`` takes, as files."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.stores.profiles import MOST_FILES, ProfileFolders, attachments, folder_name
from pytest_perfgate.model.errors import PerfgateError


def files_of(name: str, thing: object, room: Path) -> dict[str, Path]:
    return dict(attachments(name, thing, room))


def compiled(**asm: object) -> SimpleNamespace:
    return SimpleNamespace(asm=asm, metadata=SimpleNamespace(name="add", num_warps=8, shared=1024))


def test_a_dict_or_list_is_kept_as_json(tmp_path: Path) -> None:
    files = files_of("tiling/stage1.json", {"block": [128, 64], "of": Path("x")}, tmp_path)
    assert json.loads(files["tiling/stage1.json"].read_text()) == {"block": [128, 64], "of": "x"}
    assert json.loads(files_of("tried.json", [1, 2], tmp_path)["tried.json"].read_text()) == [1, 2]


def test_a_file_stays_where_it_is(tmp_path: Path) -> None:
    file = tmp_path / "k.cubin"
    file.write_bytes(b"x")
    assert files_of("mine.cubin", str(file), tmp_path / "room") == {"mine.cubin": file}
    assert not (tmp_path / "room").exists()


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", '{"work": 3}', '{"parameters": ""}'])
def test_a_damaged_note_beside_a_profile_states_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "params.json").write_text(text)
    assert ProfileFolders(tmp_path).statement(tmp_path / "k.ncu-rep") == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"parameters": {"b": "32"}, "notes": {"tiling": "64x64"}}', "b=32, tiling=64x64"),
        ('{"parameters": "32-16", "notes": {"tiling": "64x64"}}', "32-16, tiling=64x64"),
        ('{"notes": {"tiling": "64x64"}}', "tiling=64x64"),
        ('{"parameters": {"b": "32"}, "notes": {}}', "b=32"),
    ],
)
def test_what_a_test_noted_stands_beside_its_parameters(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "params.json").write_text(text)
    assert ProfileFolders(tmp_path).statement(tmp_path / "k.ncu-rep") == {"problem": problem}


def test_of_a_folder_the_machine_code_or_everything(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("a.cubin", "deep/b.o", "notes.txt"):
        (tmp_path / name).write_bytes(b"x")
    assert list(files_of("build", tmp_path, tmp_path)) == ["build/a.cubin", "build/deep/b.o"]
    for name in ("a.cubin", "deep/b.o"):
        (tmp_path / name).unlink()
    assert list(files_of("build", tmp_path, tmp_path)) == ["build/notes.txt"]


def test_object_files_of_the_host_are_no_kernels_of_a_folder(tmp_path: Path) -> None:
    build = tmp_path / "build"
    build.mkdir()
    (build / "host.o").write_bytes(b"\x7fELF" + bytes(60))
    (build / "k.o").write_bytes(b"\x7fELF" + bytes(60) + b".nv_fatbin")
    (build / "text.o").write_bytes(b"not what it says")
    assert [name for name, _ in attachments("b", build, tmp_path)] == ["b/k.o", "b/text.o"]
    (build / "k.o").unlink()
    (build / "text.o").unlink()
    assert [name for name, _ in attachments("b", build, tmp_path)] == ["b/host.o"], "it says itself that it has none"


@pytest.mark.parametrize(
    ("content", "name"), [(b"\x7fELF..", "k.cubin"), (b"\x50\xed\x55\xba", "k.fatbin"), (b"?", "k")]
)
def test_bytes_are_named_by_what_they_are(tmp_path: Path, content: bytes, name: str) -> None:
    for thing in (content, bytearray(content), memoryview(content), SimpleNamespace(code=content)):
        assert files_of("k", thing, tmp_path)[name].read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_a_kernel_of_triton_is_a_cubin_with_its_launch_beside_it(tmp_path: Path) -> None:
    (path,) = files_of("../../add.cubin", compiled(ttir="module", cubin=b"code"), tmp_path).values()
    assert path == tmp_path / "add.cubin"
    assert path.read_bytes() == b"code"
    assert json.loads(path.with_suffix(".json").read_text()) == {"name": "add", "num_warps": 8, "shared": 1024}


def test_below_compiled_every_stage_is_kept(tmp_path: Path) -> None:
    files = files_of("compiled/stage1", compiled(ttir="module", ptx=".version 8", cubin=b"code"), tmp_path)
    assert list(files) == ["compiled/stage1/add.ttir", "compiled/stage1/add.ptx", "compiled/stage1/add.cubin"]
    assert files["compiled/stage1/add.ttir"].read_text() == "module"
    assert (tmp_path / "compiled/stage1/add.json").exists()


def test_a_kernel_without_a_launch_has_none_beside_it(tmp_path: Path) -> None:
    (path,) = files_of("k", SimpleNamespace(asm={"cubin": b"code"}), tmp_path).values()
    assert not path.with_suffix(".json").exists()


@pytest.mark.parametrize("thing", [3, None, SimpleNamespace(code="text"), "nowhere.cubin"])
def test_what_cannot_be_kept_says_what_can(tmp_path: Path, thing: object) -> None:
    with pytest.raises(PerfgateError, match="attach\\('k'\\)"):
        files_of("k", thing, tmp_path)


def test_a_kernel_for_another_maker_says_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(PerfgateError, match="only ttir, hsaco"):
        files_of("k", compiled(ttir="", hsaco=b""), tmp_path)


def test_names_and_folders_that_make_no_sense(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(PerfgateError, match="is empty"):
        files_of("k", tmp_path / "empty", tmp_path)
    with pytest.raises(PerfgateError, match="not a name"):
        files_of("..", b"x", tmp_path)
    for number in range(MOST_FILES + 1):
        (tmp_path / "empty" / f"{number}.txt").touch()
    with pytest.raises(PerfgateError, match="1,001 files"):
        files_of("k", tmp_path / "empty", tmp_path)


def test_cases_with_long_names_have_folders_of_their_own(tmp_path: Path) -> None:
    folders = ProfileFolders(tmp_path)
    case = "tests/gpu/kernels/attention/test_flash_attention_backward.py::TestCausalMask::test_forward_"
    one, two = (folders.fresh("ncu", case + word) for word in ("one", "two"))
    assert one.parent != two.parent
    assert folders.fresh("ncu", case + "one").parent == one.parent
    assert folders.earlier(two) is None


def test_parameters_that_differ_in_signs_alone_are_not_compared(tmp_path: Path) -> None:
    folders = ProfileFolders(tmp_path)
    shapes = ("4x(2,3)", "4x(2 3)", "4x[2,3]", "<", ">", "a-b", "a/b", "")
    homes = {
        folders.fresh("ncu", f"test_k.py::test_a[{shape}]" if shape else "test_k.py::test_a").parent for shape in shapes
    }
    assert len(homes) == len(shapes)
    assert {"a-b", "none"} <= {home.name for home in homes}, "a plain one is the name of its folder"
    assert len({folder_name(f"test_k.py::test_a[{shape}]") for shape in shapes}) == len(shapes)
    assert folder_name("test_k.py::test_a[8-bf16]") == "test_k.py-test_a-8-bf16"
