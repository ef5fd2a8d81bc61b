"""`--sharing auto` by what is known of a program: at its first start by its terms, later by what it was measured at."""

import json

import pytest

from machines import wait_until

pytestmark = pytest.mark.alone  # shares

AUTO = ["--sharing", "auto", "--memory", "1GiB", "--cores-limit", "100"]
SMALL, FULL = 132, 8192  # blocks: an eighth of the card, and all of it
SECONDS = 9        # to be measured
AGAIN_SECONDS = 3  # to be there together, by what was
KERNEL_US = 4000  # two in flight outlast what this machine mostly stands still


def start(machine, name, blocks, *terms, seconds):
    process = machine.start("--name", name, *AUTO, *terms, "--",
                            *machine.load("--seconds", seconds, "--blocks", blocks, "--kernel-us", KERNEL_US))
    return process, machine.wait_for_tenant(name, lambda t: t["processes"])


def run_together(machine, blocks, seconds):
    """What the list says of each at its start. The speed of neither alone is known, so nothing is measured."""
    started = [start(machine, name, blocks, "--cores", "30", seconds=seconds) for name in ("one", "two")]
    for process, _ in started:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, (out, err)
    return [found for _, found in started]


def say(found):
    return [(f["sharing"], f["sharing_why"], f.get("sharing_gain_by"), f.get("sharing_gain_pct")) for f in found]


@pytest.fixture(name="judging")
def fixture_judging(machine, tmp_path):
    """A third more at least: on a machine that is short of processors a few percent are chance."""
    tuning = tmp_path / "tuning"
    tuning.write_text("space_gain_min = 33\n")
    machine.environment["ALLOT_TUNING"] = str(tuning)
    return machine


def known(machine):
    """What the daemon wrote down, by the program's name."""
    try:
        listed = json.loads((machine.run_dir / "programs.json").read_text())["programs"]
    except (OSError, ValueError):
        return {}
    return {program["key"].rsplit("/", 1)[1]: program for program in listed}


@pytest.mark.parametrize("blocks", [SMALL, FULL])
def test_together_from_the_start(judging, blocks):
    machine = judging
    first = run_together(machine, blocks, SECONDS)
    # Nothing was known.
    assert {f["sharing_why"] for f in first} == {"it leaves room for others of its group"}
    assert {f["sharing"] for f in first} == {"space"}
    # Over the end of that daemon, which had nobody left.
    machine.wait_until_gone()
    second = run_together(machine, blocks, AGAIN_SECONDS)
    assert all(found.get("sharing_gain_by") != "measured" for found in second), say(second)


@pytest.mark.parametrize("blocks", [SMALL, FULL])
def test_by_what_is_expected(judging, blocks):
    """Alone, and in turns for its terms: what its kernels fill of the card is found out all the same."""
    machine = judging
    process, found = start(machine, "one", blocks, "--cores", "60", seconds=5)
    assert (found["sharing"], found["sharing_why"]) == ("time", "it is promised most of the card")
    process.communicate(timeout=30)
    wait_until(lambda: "one" in known(machine), what="what is known of the program")
    program = known(machine)["one"]
    fill = program["filled_s"] / program["busy_s"]
    print(program)
    # Work counts as under way until that it ended is seen, which may be late here.
    assert 0.06 < fill < 0.2 if blocks == SMALL else fill > 0.76
    process, found = start(machine, "one", blocks, "--cores", "60", seconds=1)
    assert found["sharing_gain_by"] == "expected"
    assert found["sharing"] == ("space" if blocks == SMALL else "time"), say([found])
    listed = machine.allot("ps", *machine.sim).stdout
    assert ("space user/" in listed) == (blocks == SMALL) and "~" in listed, listed
    process.communicate(timeout=30)


def test_what_is_not_understood(machine):
    machine.run_dir.mkdir(parents=True, exist_ok=True)
    (machine.run_dir / "programs.json").write_text('{"version": 1, "programs": [{"key": "user/0/one"}]}')
    process, found = start(machine, "one", SMALL, "--cores", "30", seconds=0.5)
    assert "sharing_gain_by" not in found
    process.communicate(timeout=30)
    assert (machine.run_dir / "programs.json.bad").exists()
    assert "programs[0]: a value is missing or wrong" in (machine.run_dir / "allotd.log").read_text()
