"""What of a text may be shown to anybody."""

from __future__ import annotations

import pytest

from pytest_perfgate.model.privacy import Names, masked, named_in, shareable

KNOWN = Names(
    users=frozenset({"ann", "root", "test", "al", "7"}),
    hosts=frozenset({"node7", "node7.cluster"}),
    roots=frozenset({"/srv/repo", "/srv"}),
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/ann/x.cu", "~/x.cu"),
        ("a.cu:/home/ann.b-c/x.cu(3)", "a.cu:~/x.cu(3)"),
        ("/mnt/disk/home/bob/x", "~/x"),
        ("/global/homes/t/tom/x", "~/x"),
        ("/Users/bob/Library/x", "~/Library/x"),
        (r"C:\Users\bob\x.cu", r"~\x.cu"),
        (r"C:\\Users\\bob\\x.cu", r"~\\x.cu"),
        ("/root/x.cu and /root", "~/x.cu and ~"),
        ("/home/ann", "~"),
        ("/rooted/x", "/rooted/x"),
        ("https://site.example/home/page", "https://site.example/home/page"),
        ("src/home/ann2/x", "src/home/ann2/x"),
        ("/srv/repo/src/k.cu:3", "src/k.cu:3"),
        ("/srv/other/k.cu", "other/k.cu"),
        ("x/srv/repo/k.cu", "x/srv/repo/k.cu"),
        ("/scratch/ann/x by ann", "/scratch/[user]/x by [user]"),
        ("annex, joanna, ann_kernel", "annex, joanna, ann_kernel"),
        ("test, root, al, 7", "test, root, al, 7"),
        ("node7.cluster and node7", "[host] and [host]"),
        ("volta_sgemm_128x64_nn", "volta_sgemm_128x64_nn"),
        ("", ""),
        ("file:///home/bob/a.so", "file://~/a.so"),
        ("nvcc -I/home/bob/inc k_/home/bob/x", "nvcc -I~/inc k_~/x"),
        ("/data/users/bob/x and /users/bob/x", "~/x and ~/x"),
        ("GET /users/7", "GET /users/7"),
        ("cat ~bob/x", "cat ~/x"),
        ("Foo::~Foo/x, a = ~b", "Foo::~Foo/x, a = ~b"),
        ("run by bob@gpu-node17.corp.example.com", "run by [user]@[host]"),
        ("bob.b+c@example.org wrote", "[user]@[host] wrote"),
        ("ssh://bob@build-03:/opt/x", "ssh://[user]@[host]:/opt/x"),
        ("bob@node8, bob@box:/opt, bob@box:~", "[user]@[host], [user]@[host]:/opt, [user]@[host]:~"),
        ("memcpy@GLIBC_2.14 memcpy@@GLIBC_2.14 f@plt", "memcpy@GLIBC_2.14 memcpy@@GLIBC_2.14 f@plt"),
        ("f@libm.so.6 x@y.cu ?f@k@@YAXXZ @P0 mm@sm90 mm@host", "f@libm.so.6 x@y.cu ?f@k@@YAXXZ @P0 mm@sm90 mm@host"),
        ("the base build: /opt/conda/envs/k/bin/python3.11 -m pip: exit 2", "the base build: python -m pip: exit 2"),
        ("/builds/x/.venv/bin/python, '/usr/bin/python3'.", "python, 'python'."),
        ("/home/ann/v/bin/python -c, /srv/repo/.venv/bin/python", "python -c, python"),
        ("/usr/lib/python3.11/a.py /a/bin/python-config", "/usr/lib/python3.11/a.py /a/bin/python-config"),
        ("token=hf_abcdefghijklmnopqrst01", "token=[secret]"),
        ("https://bob:pa55@site.example/x", "https://[secret]@site.example/x"),
        (
            "PASSWORD=hunter2 API_KEY=abcd1234 wandb_token=0123456789abcdef0",
            "PASSWORD=[secret] API_KEY=[secret] wandb_token=[secret]",
        ),
        (
            "token=128, num_tokens=4096, token=next_token_prediction",
            "token=128, num_tokens=4096, token=next_token_prediction",
        ),
    ],
)
def test_people_machines_and_homes_go_and_the_rest_stays(text: str, shown: str) -> None:
    assert shareable(text, KNOWN) == shown


def test_whoever_has_a_home_is_known_and_the_machine_behind_them() -> None:
    texts = ["/home/ann/x", "ann@node7.cluster: started", "memcpy@GLIBC_2.14", "bob@node8"]
    names = named_in(texts, Names(users=frozenset({"eve"})))
    assert (names.users, names.hosts) == (frozenset({"ann", "eve"}), frozenset({"node7.cluster"}))
    assert named_in([], names) == names


def test_bytes_keep_their_length() -> None:
    raw = b"\x00\x08/home/eve/a\xffnode7\xe9ann\x00annex\x02hf_abcdefghijklmnopqrst"
    text = raw.decode("ascii", "surrogateescape")
    assert masked(text, KNOWN).encode("ascii", "surrogateescape") == (
        b"\x00\x08*********/a\xff*****\xe9***\x00annex\x02" + b"*" * 23
    )
