"""The files that `meson install` installs, and the completions of shells."""

import json
import os
import re
import shutil
import subprocess

import pytest

from packages import ROOT, run
from machines import BUILD

COMPLETIONS = ROOT / "deploy/completion"
ENVIRONMENT = {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"}


def test_all_files_are_installed(installed):
    files = {str(path.relative_to(installed)) for path in installed.rglob("*") if not path.is_dir()}
    for name in ("bin/allot", "bin/allotd", "bin/allot-scheduler", "include/allot-client.h",
                 "lib/systemd/system/allotd.service", "lib/systemd/system/allot-scheduler.service", "lib/sysusers.d/allot.conf",
                 "lib/sysusers.d/allot-scheduler.conf", "libexec/allot/allot-sim", "bin/allot-load",
                 "share/man/man3/allot-client.3", "share/man/man5/allotd.conf.5", "share/man/man7/allot-kubernetes.7",
                 "share/man/man8/allotd.8",
                 "share/bash-completion/completions/allot-scheduler", "share/fish/vendor_completions.d/allot.fish",
                 "share/zsh/site-functions/_allot", "share/zsh/site-functions/_allotd"):
        assert name in files or f"{name}.gz" in files, name
    libraries = {name.rsplit("/", 1)[-1] for name in files if name.startswith("lib")}
    assert {"liballot.so", "liballot-client.so.0", "liballot-client.so", "libcuda.so.1"} <= libraries
    # Each subcommand has a manual page, and so does allot-load.
    commands = re.findall(r"^  (\w+) ", run(BUILD / "allot", "help").split("Commands:")[1].split("\n\n")[0], re.M)
    pages = {name.rsplit("/", 1)[-1] for name in files if "/man1/" in name}
    assert {f"allot-{name}.1" for name in commands if name not in ("help", "version")} == pages - {"allot.1", "allot-load.1"}


def test_installed_programs_find_their_libraries(installed, tmp_path):
    environment = {**os.environ, "ALLOT_RUN_DIR": str(tmp_path / "run")}
    line = run(installed / "bin/allot", "run", "--sim", "h200", "--memory", "2GiB", "--", installed / "bin/allot-load",
               "--json", "--seconds", "0.2", env=environment).splitlines()[-1]
    assert json.loads(line)["elapsed_s"] > 0


def test_manuals_are_generated_from_the_tables(tmp_path):
    for program in ("allotd", "allot-scheduler"):
        assert run(ROOT / "scripts/settings-page", "--manual", program, BUILD) == \
            (ROOT / f"docs/reference/{program}.conf.5").read_text(), f"scripts/settings-page --manual {program}"
        example = ROOT / f"deploy/examples/{program}.conf"
        assert run(ROOT / "scripts/settings-page", "--example", program, BUILD) == example.read_text(), \
            f"scripts/settings-page --example {program}"
        # The example is a valid file of settings, and each of its lines is one too when its # is removed.
        run(BUILD / program, "--check-config", example)
        defaults = tmp_path / f"{program}.conf"
        defaults.write_text(re.sub(r"^#(?=[a-z_]+ = )", "", example.read_text(), flags=re.M))
        assert defaults.read_text() != example.read_text()
        run(BUILD / program, "--check-config", defaults)
    if shutil.which("mandoc"):
        for page in sorted((ROOT / "docs/reference").glob("*.[1-8]")):
            warnings = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True,
                                      check=False).stdout.splitlines()
            assert not [line for line in warnings if "missing date" not in line]


def complete_by_bash(*words):
    """The completions that bash offers for the last of the words."""
    script = f'. {COMPLETIONS}/allot; . {COMPLETIONS}/daemon; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); ' \
             '"$(complete -p "$1" | sed "s/.*-F \\([a-z_]*\\) .*/\\1/")"; printf "%s\\n" "${COMPREPLY[@]}"'
    return run("bash", "-c", script, "bash", *words, env=ENVIRONMENT).split()


def test_bash_completion(machine2):  # noqa: F811
    assert {"run", "set", "help"} <= set(complete_by_bash("allot", ""))
    assert complete_by_bash("allot", "set", "x", "--mem") == ["--memory"]
    assert complete_by_bash("allot", "set", "x", "--elastic", "=", "o") == ["on", "off"]
    assert complete_by_bash("allot", "cdi", "cr") == ["create"]
    assert "--guard-devices" in complete_by_bash("allotd", "--guard")
    assert complete_by_bash("allot-scheduler", "--check") == ["--check-config"]
    assert "bash" in complete_by_bash("allot", "run", "--memory", "1GiB", "--", "bas")
    machine2.start("--name", "here", "--", "sleep", 60)
    machine2.wait_for_tenant("here")
    assert complete_by_bash("allot", "pause", "--run-dir", str(machine2.run_dir), "h") == ["here"]
    assert complete_by_bash("allot", "pause", "--run-dir", "/nowhere", "h") == []


def test_fish_completion():
    if not shutil.which("fish"):
        pytest.skip("no fish here")

    def complete(file, line):
        return [offered.split("\t")[0] for offered in
                run("fish", "--no-config", "-c", f"source {COMPLETIONS}/{file}; complete -C '{line}'",
                    env=ENVIRONMENT).splitlines()]

    assert complete("allot.fish", "allot unc") == ["uncordon"]
    assert sorted(complete("allot.fish", "allot set x --elastic ")) == ["off", "on"]
    assert "bash" in complete("allot.fish", "allot run --memory 1GiB -- bas")
    assert "--guard-devices" in complete("daemon.fish", "allotd --guard")


def test_zsh_completion(tmp_path):
    """The completion function runs with stand-ins for zsh's completion system, which needs a terminal."""
    if not shutil.which("zsh"):
        pytest.skip("no zsh here")
    (tmp_path / "stand_ins").write_text("""
_describe() { print -l -- ${(P)2} }
_normal() { print -l -- normal $words $CURRENT }
compadd() { print -l -- ${(P)2} }
words=("$@"); CURRENT=$#
. "$FILE"
""")

    def complete(*words):
        file = COMPLETIONS / ("_allot" if words[0] == "allot" else "_daemon")
        return run("zsh", "-f", tmp_path / "stand_ins", *words, env={**ENVIRONMENT, "FILE": str(file)}).splitlines()

    assert complete("allot", "unc") == ["uncordon:let a GPU take new tenants again"]
    assert complete("allot", "set", "x", "--elastic", "o") == ["on:", "off:"]
    assert complete("allot", "run", "--", "bash", "x") == ["normal", "bash", "x", "2"]
    assert "--guard-devices" in complete("allotd", "--guard")
