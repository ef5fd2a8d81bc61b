"""Checks the documentation's command lines of other projects' programs, such as kubectl: whether a program knows the command
and its options. Only --help of the program is called, which changes nothing and asks no server."""

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
    """Of programs that read all options before they look at --help, and say which they don't know."""
    # What stands behind run's image, or behind --, is another program's.
    at = next((arguments.index(word) + more for word, more in (("run", 1), ("--", 0)) if word in arguments), len(arguments))
    status, said = ask(tool, *arguments[:at], "--help", *arguments[at:])
    assert status == 0, said
    # An unknown command is answered by the help of what stands before it.
    usage = re.search(r"^Usage:\s*(.*)", said, re.M)
    command = [word for word in arguments if re.fullmatch("[a-z][a-z-]*", word)]
    assert usage and any(f" {word} " in usage[1] + " " for word in command), said


def by_text(*command):
    """Of programs whose help names options, and commands where there are such: COMMAND... prints it."""
    def check(_, *arguments):
        status, said = ask(*command)
        assert status == 0, said
        for word in arguments:
            option = re.match(r"(--[\w-]+|-\w)", word)
            if option:
                assert re.search(rf"(?<![\w-]){option[1]}(?![\w-])", said), f"{command[0]} does not have {word}"
    return check


def by_text_of_verb(tool, *arguments):
    verb = next(word for word in arguments if not word.startswith("-"))
    status, said = ask(tool, "--help")
    assert status == 0 and re.search(rf"(?<![\w-]){verb}(?![\w-])", said), f"{tool} {verb}"
    by_text(tool, "--help")(tool, *arguments)


def by_text_behind_verb(tool, verb, *arguments):
    by_text(*tool.split(), verb, "--help")(tool, *arguments)


def as_known(*forms):
    """Of programs that can't be had everywhere: lines as their manuals have them. Where they can, test_slurm.py and test_image.py
    run those of srun and ctr; nvidia-ctk asks a driver."""
    def check(*call):
        assert any(re.fullmatch(form, " ".join(call[1:])) for form in forms), " ".join(call)
    return check


def is_run(*_):
    """Lines of docs/guide/install.md and embed.md, which tests/package runs as they are."""

# A program: what looks at its lines.
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
    """That the program takes it; False where the program is not here to be asked."""
    tool = call[0]
    look = PROGRAMS[tool]
    needs_tool = look in (by_parsing, by_text_of_verb, by_text_behind_verb) or tool in ("journalctl", "curl", "jq", "logger")
    if needs_tool and not shutil.which(tool):
        return False
    look(*call)
    return True
