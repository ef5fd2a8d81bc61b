"""allot top in a pseudoterminal, whose screen a terminal emulator library reads; and its output for scripts."""

import json
import os
import re
import signal
import subprocess
import termios

import pytest

from machines import BUILD, GIB, wait_until
from terminal import Terminal

COLOURS = re.compile(rb"\x1b\[[0-9;]*\b(3[0-7]|38;5;\d+)[;m]")


@pytest.fixture
def top(machine):
    """start(*options) runs `allot top` in a terminal until the test ends; it returns the Terminal."""
    started = []

    def start(*options, **more):
        started.append(Terminal(machine, *options, **more))
        return started[-1]

    yield start
    for terminal in started:
        terminal.close()


def start_two(machine):
    """Starts `able` with little memory and many cores, and `baker` with much memory and few cores."""
    able = machine.start("--name", "able", "--memory", "5GiB", "--cores", "60", "--", "sleep", "60")
    machine.wait_for_tenant("able")
    baker = machine.start("--name", "baker", "--memory", "50GiB", "--cores", "20", "--on-full", "fail",
                          "--", "sleep", "60")
    machine.wait_for_tenant("baker")
    return able, baker


def test_shows_sorts_and_quits(machine, top):
    start_two(machine)
    terminal = top("--sort", "name")
    lines = terminal.wait_for_text("baker")
    row = next(line for line in lines if line.startswith("able "))
    assert "5.0G" in row and " 60 " in row, row
    assert "GPU 0 NVIDIA H200" in lines[1]
    terminal.wait_for(lambda _: terminal.order() == ["able", "baker"], "order by name")
    terminal.press("r")
    terminal.wait_for_text("reversed")
    terminal.wait_for(lambda _: terminal.order() == ["baker", "able"], "reverse order")
    terminal.press("/abl\r")
    terminal.wait_for(lambda _: terminal.order() == ["able"], "filter")
    terminal.press("q")
    assert terminal.process.wait(timeout=20) == 0
    assert termios.tcgetattr(terminal.slave) == terminal.before
    # It has left the alternate screen and shows the cursor.
    wait_until(lambda: b"\x1b[?1049l" in terminal.raw, what="the end of the alternate screen")
    assert terminal.raw.rindex(b"\x1b[?1049l") > terminal.raw.rindex(b"\x1b[?1049h")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_restore_the_terminal(machine, top, number):
    start_two(machine)
    terminal = top()
    terminal.wait_for_text("able")
    assert termios.tcgetattr(terminal.slave) != terminal.before
    if number == signal.SIGINT:
        terminal.press("\x03")
    else:
        terminal.process.send_signal(number)
    assert terminal.process.wait(timeout=20) == -number
    assert termios.tcgetattr(terminal.slave) == terminal.before


def test_layout_follows_the_size(machine, top):
    start_two(machine)
    terminal = top("--sort", "name")
    terminal.wait_for(lambda lines: "quit" in lines[23] and "able" in "".join(lines), "24 lines")
    terminal.set_size(120, 40)
    # Now there is room for the selected tenant's details, and for more columns.
    terminal.wait_for(lambda lines: len(lines) == 40 and "quit" in lines[39] and
                      all(word in "".join(lines) for word in ("able on GPU 0", "REFUSED")), "40 lines")
    terminal.set_size(30, 6)
    terminal.wait_for(lambda lines: len(lines) == 6 and lines[5].startswith("q quit"), "6 lines")
    terminal.set_size(10, 2)
    terminal.wait_for(lambda lines: lines[0] == "too small", "2 lines")
    terminal.press("q")
    assert terminal.process.wait(timeout=20) == 0


def test_changes_need_a_confirmation(machine, top):
    start_two(machine)
    terminal = top("--sort", "name")
    terminal.wait_for_text("able")
    terminal.press("pn")
    terminal.wait_for_text("nothing was changed")
    assert machine.tenants()["able"]["state"] != "paused"
    terminal.press("p")
    terminal.wait_for_text("pause able")
    terminal.press("y")
    machine.wait_for_tenant("able", lambda tenant: tenant["state"] == "paused")
    terminal.wait_for(lambda lines: any(re.match("able .* paused ", line) for line in lines), "paused")
    terminal.press("p")
    terminal.wait_for_text("resume able")
    terminal.press("y")
    machine.wait_for_tenant("able", lambda tenant: tenant["state"] != "paused")
    terminal.press("m6GiB\r")
    terminal.wait_for_text("set memory of able on GPU 0 to 6.0 GiB, now 5.0 GiB")
    terminal.press("y")
    machine.wait_for_tenant(
        "able", lambda tenant: tenant["devices"][0]["memory_quota_bytes"] == 6 * GIB)
    terminal.wait_for(lambda lines: any(re.match("able .* 6.0G ", line) for line in lines), "6 GiB")


def test_refusals_of_the_daemon_are_shown(machine, top):
    start_two(machine)
    terminal = top("--sort", "name")
    terminal.wait_for_text("able")
    # An invalid size is reported at once, and can be corrected.
    terminal.press("m900GB!\r")
    terminal.wait_for_text("'900GB!': unit unknown")
    terminal.press("\x7f\r")
    terminal.wait_for_text("set memory of able on GPU 0 to 838.2 GiB")
    terminal.press("y")
    refused = machine.allot("set", "able", "--memory", "900GB", *machine.sim)
    assert refused.returncode == 1
    # The refusal is shown in full, over several lines: its end says what to do.
    whole = refused.stderr.removeprefix("allot: set: ").strip()
    terminal.wait_for(lambda lines: whole in " ".join(line.rstrip() for line in lines), "the whole refusal")
    assert machine.tenants()["able"]["devices"][0]["memory_quota_bytes"] == 5 * GIB


def test_a_killed_daemon_is_reported(machine, top):
    runs = start_two(machine)
    terminal = top()
    terminal.wait_for_text("able")
    # `allot run` would start the next daemon at once: it is stopped until the checks are done.
    for run in runs:
        run.send_signal(signal.SIGSTOP)
    try:
        for pid in machine.daemons():
            os.kill(pid, signal.SIGKILL)
        lines = terminal.wait_for(lambda lines: lines[1].startswith("! "), "the message about the daemon")
        assert lines[1].startswith(("! the daemon in /", "! no daemon runs in /")), lines[1]
        # The last figures remain on the screen; the keyboard works.
        assert any(line.startswith("able ") for line in lines)
        terminal.press("?")
        terminal.wait_for_text("any key goes back")
        terminal.press("x")
    finally:
        for run in runs:
            run.send_signal(signal.SIGCONT)
    terminal.wait_for(lambda lines: lines[1].startswith("GPU 0") and
                      any(line.startswith("able ") for line in lines), "the next daemon")


def test_keys_work_while_the_daemon_does_not_answer(machine, top):
    """The daemon is stopped by a signal."""
    start_two(machine)
    terminal = top("--sort", "name")
    terminal.wait_for_text("able")
    daemons = machine.daemons()
    for pid in daemons:
        os.kill(pid, signal.SIGSTOP)
    try:
        terminal.press("?")
        terminal.wait_for_text("any key goes back")
        terminal.press("x")
        terminal.press("r")
        terminal.wait_for(lambda _: terminal.order() == ["baker", "able"], "reverse order")
        terminal.press("q")
        assert terminal.process.wait(timeout=8) == 0
    finally:
        for pid in daemons:
            os.kill(pid, signal.SIGCONT)
    assert termios.tcgetattr(terminal.slave) == terminal.before


def test_updates_do_not_flicker(machine, top):
    """While only figures change, the screen is never cleared or written again."""
    start_two(machine)
    terminal = top()
    terminal.wait_for_text("baker")
    begin = len(terminal.raw)
    clock = terminal.lines()[0][-8:]
    terminal.wait_for(lambda lines: re.fullmatch(r"\d\d:\d\d:\d\d", lines[0][-8:])
                      and lines[0][-8:] != clock, "a later update")
    written = terminal.raw[begin:]
    assert written and not re.search(rb"\x1b\[[0-3]?J", written)
    assert b"TENANT" not in written


def test_waits_for_a_daemon(machine, top):
    terminal = top()
    terminal.wait_for(lambda lines: lines[1].startswith("! no daemon runs"), "none")
    terminal.press("p")
    terminal.wait_for_text("no tenant is selected")
    start_two(machine)
    terminal.wait_for_text("able")


def test_ascii_and_colours(machine, top):
    start_two(machine)
    plain = top("--ascii", "--no-color")
    plain.wait_for_text("baker")
    assert plain.raw.isascii() and not COLOURS.search(plain.raw)
    by_locale = top(environment={"LC_ALL": "C", "NO_COLOR": "1"})
    by_locale.wait_for_text("baker")
    assert by_locale.raw.isascii() and not COLOURS.search(by_locale.raw)
    rich = top()
    rich.wait_for_text("baker")
    assert not rich.raw.isascii() and COLOURS.search(rich.raw)


def test_unknown_terminal(machine, top):
    terminal = top(environment={"TERM": "no-such-terminal"})
    assert terminal.process.wait(timeout=20) == 1
    wait_until(lambda: b"no-such-terminal" in terminal.raw, what="the message")
    assert terminal.raw.count(b"\n") == 1
    assert b"--once" in terminal.raw


def test_once(machine):
    start_two(machine)
    result = machine.allot("top", "--once", "--interval", "0.2", "--sort", "name", *machine.sim,
                           environment={"LC_ALL": "C"})
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0].startswith("allot top - simulated h200  2 tenants")
    assert [line.split()[0] for line in lines[4:]] == ["able", "baker"]
    assert result.stdout.isascii() and max(map(len, lines)) <= 100
    result = machine.allot("top", "--once", "--interval", "0.2", "--filter", "bak", *machine.sim)
    assert "baker" in result.stdout and "able" not in result.stdout


def test_once_json(machine):
    start_two(machine)
    result = machine.allot("top", "--once", "--json", "--interval", "0.2", *machine.sim)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["version"] == 1 and report["connected"] is True
    assert report["containers"] == []
    able = next(tenant for tenant in report["tenants"] if tenant["name"] == "able")
    rates = able["devices"][0]["rates"]
    assert 0.2 <= rates["interval_s"] < 20
    assert rates["leases_per_s"] >= 0 and rates["denied"] == 0
    # All other fields are those of allot ps.
    assert set(machine.tenants()["able"]) == set(able)
    assert set(machine.tenants()["able"]["devices"][0]) | {"rates"} == set(able["devices"][0])


def test_json_lines(machine):
    start_two(machine)
    process = subprocess.Popen([BUILD / "allot", "top", "--json", "--interval", "0.2", *machine.sim],
                               env=machine.environment, stdout=subprocess.PIPE, text=True)
    try:
        reports = [json.loads(process.stdout.readline()) for _ in range(3)]
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
    rates = [report["tenants"][0]["devices"][0]["rates"] for report in reports]
    assert rates[0] is None and rates[1] and rates[2]


def test_once_without_daemon(machine):
    result = machine.allot("top", "--once", "--json", *machine.sim)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {"version": 1, "connected": False, "devices": [],
                                         "tenants": [], "containers": []}
    result = machine.allot("top", "--once", *machine.sim)
    assert result.returncode == 0 and "no daemon runs in" in result.stdout


@pytest.mark.parametrize("options, part", [
    (["--interval", "0.01"], "0.1 or more"),
    (["--interval", "x"], "'x'"),
    (["--sort", "size"], "name, gpu, state, compute"),
    (["--json", "--sort", "name"], "--sort: can't be used with --json"),
    (["--json", "--filter", "a"], "--filter: can't be used with --json"),
    (["--once", "--filter", "x" * 64], "at most 63 bytes"),
    (["web"], "unexpected argument"),
    ([], "is not a terminal"),
])
def test_bad_usage(machine, options, part):
    result = machine.allot("top", *options)
    assert result.returncode == 2, result
    assert len(result.stderr.splitlines()) == 1 and result.stderr.startswith("allot: top: ")
    assert part in result.stderr
