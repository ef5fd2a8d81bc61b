"""The policy `feedback` with `feedback_sensor = nvml`, on cards whose NVML can't measure utilization: the daemon uses its own
busy time instead, still enforces the tenant's cap, and logs this once."""

import pytest

from scrape import address_in, scrape
from servers import start_servers

pytestmark = pytest.mark.alone  # shares

SETTINGS = "policy = feedback\nmetrics_listen = 127.0.0.1:0\n"


def load(machine, seconds, *terms):
    """The Share that a tenant with a saturating load gets."""
    return machine.end_load(machine.start_load("--memory", "1GiB", *terms,
                                               load=("--seconds", seconds)))[0]


@pytest.mark.parametrize("defects, says", [
    ("defects = loses-busy-process\n", "NVML has no utilization of a process that uses the GPU"),
    ("defects = no-process-utilization\n", "nvmlDeviceGetProcessUtilization: not supported"),
    ("", None),
], ids=["names none", "tells nothing", "sound"])
def test_the_charge_is_the_measure_instead(machine, tmp_path, defects, says):
    """Without a cap for as long as it takes to tell, then 30 % over 6 s: the charge within 5 points,
    where that is the measure; the work of a sound card, whose sensor knows nothing of ends that are
    seen late, below 40 %. Each missed process would be a warning ten times a second."""
    text = start_servers(machine, tmp_path, SETTINGS, defects, tuning="feedback_sensor = nvml\n")
    address = address_in(text)
    load(machine, 5)
    got = load(machine, 6, "--cores", 30)
    assert got.is_sound() and got.charged_pct > 25 and got.work_pct < 40, got
    assert not says or got.charged_pct < 35, got
    (device,) = machine.ps()["devices"]
    assert device["policy"] == "feedback"
    fallbacks = scrape(address).value("allot_device_sensor_fallbacks_total")
    assert 0 < fallbacks <= 4 if says else fallbacks == 0
    text += (machine.run_dir / "allotd.log").read_text()
    assert text.count("feedback_sensor nvml:") == (1 if says else 0), text
    if says:
        assert says in text and text.count("allot's busy time is used instead") == 1, text
