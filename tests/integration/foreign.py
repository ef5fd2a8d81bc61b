"""Checks the documentation's command lines of other projects' programs, such as kubectl: does the program know the command and
its options? Only the program's --help is called, which changes nothing and contacts no server."""

import os
import re
import shutil
import subprocess
import sys


def ask(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
                          env={**os.environ, "MANPAGER": "cat", "LC_ALL": "C.UTF-8"})
    return done.returncode, done.stdout + done.stderr


def by_parsing(tool, *arguments):
    """Checks a call of a program that parses all options before it handles --help, and rejects unknown options."""
    # Words after run's image, or after --, belong to another program.
    at = next((arguments.index(word) + more for word, more in (("run", 1), ("--", 0)) if word in arguments), len(arguments))
    status, output = ask(tool, *arguments[:at], "--help", *arguments[at:])
    assert status == 0, output
    # For an unknown command, the program prints the help of the command before it.
    usage = re.search(r"^Usage:\s*(.*)", output, re.M)
    command = [word for word in arguments if re.fullmatch("[a-z][a-z-]*", word)]
    assert usage and any(f" {word} " in usage[1] + " " for word in command), output


def by_text(*command):
    """Returns a check that each option of a call is in the help text that COMMAND... prints."""
    def check(_, *arguments):
        status, output = ask(*command)
        assert status == 0, output
        for word in arguments:
            option = re.match(r"(--[\w-]+|-\w)", word)
            if option:
                assert re.search(rf"(?<![\w-]){option[1]}(?![\w-])", output), f"{command[0]} does not have {word}"
    return check


def by_text_of_verb(tool, *arguments):
    verb = next(word for word in arguments if not word.startswith("-"))
    status, output = ask(tool, "--help")
    assert status == 0 and re.search(rf"(?<![\w-]){verb}(?![\w-])", output), f"{tool} {verb}"
    by_text(tool, "--help")(tool, *arguments)


def by_text_behind_verb(tool, verb, *arguments):
    by_text(*tool.split(), verb, "--help")(tool, *arguments)


def as_known(*forms):
    """Returns a check against known forms, from the manuals of programs that are not available everywhere. Where they are,
    test_slurm.py and test_image.py run srun and ctr. nvidia-ctk needs a driver."""
    def check(*call):
        assert any(re.fullmatch(form, " ".join(call[1:])) for form in forms), " ".join(call)
    return check


def is_run(*_):
    """Accepts lines of docs/guide/install.md and embed.md, which tests/package runs as they are."""

# The check for each program's command lines.
PROGRAMS = {
    "kubectl": by_parsing, "helm": by_parsing, "docker": by_parsing, "podman": by_parsing,
    "systemctl": by_text_of_verb, "journalctl": by_text("journalctl", "--help"), "apt": as_known(r"(?:install|remove|purge)(?: \S+)?"),
    "meson": by_text_behind_verb,
    "pip": lambda tool, *arguments: by_text_behind_verb(f"{sys.executable} -m pip", *arguments),
    "nvidia-ctk": as_known(r"cdi generate --output=\S+"), "srun": as_known(r"--gres=shard:\d+ shared python3 \S+"),
    "ssh-keygen": is_run,
    "cc": is_run,
    "pkg-config": is_run,
    **{name: by_text(name, "--help") for name in ("grep", "logger", "sleep", "sed", "sha256sum", "usermod", "pkill")},
    "curl": by_text("curl", "--help", "all"),
    "jq": by_text("jq", "--help"), "dpkg": by_text("dpkg-query", "--help"), "ctr": as_known(r"images import", r"-n k8s\.io images import \S+"),
}


def check_call(call):
    """Asserts that the program accepts the call. Returns False, without a check, if the program is not installed."""
    tool = call[0]
    check = PROGRAMS[tool]
    needs_tool = check in (by_parsing, by_text_of_verb, by_text_behind_verb) or tool in ("journalctl", "curl", "jq", "logger")
    if needs_tool and not shutil.which(tool):
        return False
    check(*call)
    return True
