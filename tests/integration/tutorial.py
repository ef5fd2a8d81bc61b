"""Runs docs/guide/tutorial.md line by line, like a user who pastes it into a shell. `python3 tutorial.py` runs all of it in
the source folder, with the build; test_docs.py uses the build under test."""

import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TUTORIAL = ROOT / "docs" / "guide" / "tutorial.md"
BUILD_LINE = "scripts/build"


def blocks(page=TUTORIAL):
    """[(language, text)] of a page."""
    return re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.M | re.S)


class Shell:
    """A shell into which somebody pastes lines."""

    def __init__(self, folder, environment):
        self.process = subprocess.Popen(["bash", "--noprofile", "--norc"], cwd=folder, env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def paste(self, line):
        """(status, what it printed)"""
        self.process.stdin.write(f"{{ {line}\n}} </dev/null\necho \"<<status $?>>\"\n")
        self.process.stdin.flush()
        said = []
        for text in self.process.stdout:
            ended = re.search(r"^(.*)<<status (\d+)>>$", text)
            if ended:
                return int(ended[2]), "".join(said) + ended[1]
            said.append(text)
        raise AssertionError("the shell ended:\n" + "".join(said))

    def close(self):
        self.process.stdin.write("kill $(jobs -p) 2>/dev/null\nwait\n")
        self.process.stdin.close()
        self.process.wait(timeout=30)


def words_of_heads(text):
    """Of an output that is shown: words all in capitals, which don't change from run to run; or all, of one line."""
    return set(re.findall(r"\b[A-Z][A-Z_]{2,}\b", text)) or set(text.split())


def check_shares(listed):
    got = {tenant["name"]: tenant["devices"][0]["used_s"] for tenant in listed["tenants"]}
    assert got["train"] > got["eval"] > got["notebook"] > 0, got


def follow(folder, environment, skipped=()):
    """Each line in its turn; what is shown must be what was said. Returns how many lines that were."""
    shell = Shell(folder, environment)
    said = ""
    pasted = shown = 0
    try:
        for language, text in blocks():
            if language == "sh":
                said = ""
                for line in text.splitlines():
                    if line in skipped:
                        continue
                    status, more = shell.paste(line)
                    assert status == 0, f"{line}\n{more}"
                    said += more
                    pasted += 1
            elif language == "text":
                missing = words_of_heads(text) - set(re.findall(r"\S+", said)) - set(re.findall(r"\w+", said))
                assert not missing, (missing, said)
                if not shown:
                    check_shares(json.loads(shell.paste("allot ps --json --sim h200")[1]))
                shown += 1
        assert pasted > 15 and shown >= 4
        assert "train" not in said, "after its end nobody is there"
    finally:
        shell.close()
    return pasted


if __name__ == "__main__":
    print(f"{follow(ROOT, dict(os.environ))} lines pasted")
