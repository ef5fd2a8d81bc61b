"""The extra cost, in a tenant, of calls other than launches; and the cost to a process that uses no GPU."""

from harness.result import Row, at_most

# The unit of each row.
UNITS = (("cuGetProcAddress, governed", "ns"), ("cuGetProcAddress, passed", "ns"),
         ("cuGetProcAddress, unknown", "ns"), ("cuGetProcAddress", "us"), ("cuMemAlloc", "ns"),
         ("cuCtxCreate", "us"), ("cuDevicePrimaryCtxRetain", "us"))
SCALE = {"ns": 1.0, "us": 1e3}


def measure(bench, program, *options):
    """Runs a tenant's process that measures itself with and without hooks. Returns its lines."""
    job = bench.machine.start(program, [bench.machine.build.program(program), *options],
                              ["--memory", "8GiB"])
    job.check(300)
    return [line for _, line in job.json()]


def calls(bench):
    rounds = 1 if bench.settings.quick else 3
    for line in measure(bench, "call-cost", "--rounds", str(rounds)):
        unit = next(unit for call, unit in UNITS if line["name"].startswith(call))
        add_rows(bench, line, unit)


def add_rows(bench, line, unit):
    """Adds a row that is judged by the median of the pairs, in percent of the driver's own time."""
    scale = SCALE[unit]
    native, added = line["native_ns"], line["added_ns"]
    bench.result.add(Row(line["name"], unit, (native + added) / scale, native=native / scale))
    bench.result.add(Row(f"{line['name']}: quartiles' distance", unit,
                         (line["added_high_ns"] - line["added_low_ns"]) / scale))
    bench.result.add(Row(f"{line['name']}: standard error of the median", "%",
                         100.0 * line["error_ns"] / native))
    row = Row(f"{line['name']}: added", "%", 100.0 * added / native, error=100.0 * line["error_ns"] / native)
    # The simulated driver's own time says nothing about a real driver's.
    bench.result.add(row if bench.machine.sim else at_most(row, 1))


def start(bench):
    line = measure(bench, "start-cost", "--pairs",
                   str(1000 if bench.settings.quick else 3000))[-1]
    bench.result.add(Row("/bin/true, started and waited for", "ms",
                         (line["native_ns"] + line["added_ns"]) / 1e6,
                         native=line["native_ns"] / 1e6))
    bench.result.add(Row("/bin/true: quartiles' distance", "ms",
                         (line["added_high_ns"] - line["added_low_ns"]) / 1e6))
    # This uses no GPU, so it is also judged on a simulated one.
    bench.result.add(at_most(Row("/bin/true: added", "ms", line["added_ns"] / 1e6, error=line["error_ns"] / 1e6), 0.3))
