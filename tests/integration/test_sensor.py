"""The policy `feedback` with `feedback_sensor = nvml`, on GPUs whose NVML can't measure utilization. The daemon uses its own
busy time instead, still enforces the tenant's limit, and logs this once."""

import pytest

from scrape import address_in, scrape
from servers import start_servers

pytestmark = pytest.mark.alone  # shares

SETTINGS = "policy = feedback\nmetrics_listen = 127.0.0.1:0\n"


def load(machine, seconds, *terms):
    """Runs a saturating load; returns its Share."""
    return machine.end_load(machine.start_load("--memory", "1GiB", *terms,
                                               load=("--seconds", seconds)))[0]


@pytest.mark.parametrize("defects, reason", [
    ("defects = loses-busy-process\n", "NVML reports no utilization of a process that uses the GPU"),
    ("defects = no-process-utilization\n", "nvmlDeviceGetProcessUtilization: not supported"),
    ("", None),
], ids=["loses a process", "no utilization", "no defect"])
def test_the_charge_replaces_a_missing_sensor(machine, tmp_path, defects, reason):
    """First a load without a limit runs until the defect is found, then one limited to 30 % for 6 s. If the charge replaces the
    sensor, the charge is within 5 points. On a GPU without defects the work is below 40 %, as NVML ignores ends that are seen
    late. A warning for each missed process would come ten times a second."""
    text = start_servers(machine, tmp_path, SETTINGS, defects, tuning="feedback_sensor = nvml\n")
    address = address_in(text)
    load(machine, 5)
    got = load(machine, 6, "--cores", 30)
    assert got.is_sound() and got.charged_pct > 25 and got.work_pct < 40, got
    assert not reason or got.charged_pct < 35, got
    (device,) = machine.ps()["devices"]
    assert device["policy"] == "feedback"
    fallbacks = scrape(address).value("allot_device_sensor_fallbacks_total")
    assert 0 < fallbacks <= 4 if reason else fallbacks == 0
    text += (machine.run_dir / "allotd.log").read_text()
    assert text.count("feedback_sensor nvml:") == (1 if reason else 0), text
    if reason:
        assert reason in text and text.count("the busy time that allot measures is used instead") == 1, text
