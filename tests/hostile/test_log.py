"""Requests in a loop, each of which could cause a log entry: the log does not grow with them."""

import json
import socket

from servers import start_servers
from test_violations import log_of

REQUESTS = 2000


def repeat_requests(machine, times, *requests):
    """Sends the requests `times` times; returns the last answer."""
    with socket.socket(socket.AF_UNIX) as control, control.makefile("rw") as lines:
        control.connect(str(machine.run_dir / "allotd.sock"))
        for _ in range(times):
            for request in requests:
                lines.write(json.dumps({"version": 1, **request}) + "\n")
                lines.flush()
                answer = json.loads(lines.readline())
                assert answer["ok"], answer
    return answer


def test_repeated_warnings_are_limited(machine, tmp_path):
    start_servers(machine, tmp_path, "")
    for name in "one", "two":
        machine.start("--name", name, "--cores", "50", "--", "sleep", "100")
        machine.wait_for_tenant(name)
    answer = repeat_requests(machine, REQUESTS, {"op": "set", "name": "one",
                                                 "devices": [{"index": 0, "cores_pct": 90}]})
    assert answer["warnings"]
    assert 1 <= log_of(machine).count("guarantees add up to") < REQUESTS / 10


def test_entries_of_short_tenants_are_limited(machine, tmp_path):
    start_servers(machine, tmp_path, "")
    repeat_requests(machine, REQUESTS // 4,
                    {"op": "create", "name": "brief", "devices": [{"index": 0, "memory_bytes": 1 << 30}]},
                    {"op": "remove", "name": "brief"})
    assert 1 <= log_of(machine).count("'brief'") < REQUESTS / 10
