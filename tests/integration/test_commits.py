"""scripts/check-commits, which checks the form of commit messages."""

import shutil
import subprocess

import pytest

from machines import ROOT

GOOD = "Untie the parts\n\nThey included one another.\n"


def check(tmp_path, message):
    (tmp_path / "message").write_text(message)
    return subprocess.run([ROOT / "scripts/check-commits", "--file", tmp_path / "message"],
                          capture_output=True, text=True, check=False)


@pytest.mark.parametrize("message", [GOOD, "# a comment\n\n" + GOOD, GOOD + "\nSigned-off-by: A <a@example.com>\n",
                                     GOOD + "\n    " + 120 * "x" + "\n"])
def test_good_messages_pass(tmp_path, message):
    done = check(tmp_path, message)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("message, fault", [
    (73 * "x" + "\n\nWhy.\n", "the subject has 73 characters"),
    ("Untie the parts.\n\nWhy.\n", "full stop"),
    ("Untie the parts\nWhy.\n", "second line must be empty"),
    ("Untie the parts\n", "no body"),
    ("Untie the parts\n\nSigned-off-by: A <a@example.com>\n", "no body"),
    ("Untie the parts\n\n" + 101 * "x" + "\n", "a line of the body has 101 characters"),
    ("# nothing\n", "empty"),
])
def test_bad_messages_are_refused(tmp_path, message, fault):
    done = check(tmp_path, message)
    assert done.returncode == 1
    assert fault in done.stdout


@pytest.mark.skipif(not shutil.which("git"), reason="no git here")
def test_the_hook_refuses_bad_messages(tmp_path):
    def git(*arguments, **more):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-c",
                               f"core.hooksPath={ROOT / 'scripts/hooks'}", *arguments],
                              cwd=tmp_path, capture_output=True, text=True, check=False, **more)

    assert git("init", "-q").returncode == 0
    refused = git("commit", "--allow-empty", "-m", "Untie the parts")
    assert refused.returncode == 1 and "no body" in refused.stdout + refused.stderr
    assert git("commit", "--allow-empty", "-m", "Untie the parts", "-m", "They included one another.").returncode == 0
