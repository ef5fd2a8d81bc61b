"""A process that lacks something it needs to join its tenant gets no GPU. It prints what is missing and what to do."""

import pytest

from held import compile_c


@pytest.fixture(scope="session")
def lacking(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("lacking") / "lacking", "lacking.c", "-ldl")


@pytest.mark.parametrize("what, messages", [
    ("madvise", ["madvise(MADV_WIPEONFORK) is refused", "let the filter allow it"]),
    ("descriptors", ["this process has no file descriptor left", "raise its limit (ulimit -n)"]),
    ("one-descriptor", ["this process has no file descriptor left", "raise its limit (ulimit -n)"]),
    ("namespace", ["a user namespace that does not map its user and group", "write uid_map and gid_map"]),
])
def test_the_message_names_what_is_missing(machine, lacking, what, messages):
    done = machine.run("--memory", "1GiB", "--", lacking, what)
    if done.returncode == 77:
        pytest.skip("this state can't be made here")
    assert done.stdout == "cuInit 802\n", done.stderr
    assert done.stderr.count("no GPU for this process") == 1
    for part in messages:
        assert part in done.stderr
    assert "errno" not in done.stderr
