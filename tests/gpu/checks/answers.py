"""Compares what cuGetProcAddress returns in a tenant with what the driver itself returns
(tests/gpu/answers.c)."""

RUN_S = 300


def describe(difference):
    ours = difference["our_pfn"], difference["ours"], difference["our_status"]
    drivers = difference["expected"], difference["driver"], difference["driver_status"]
    return (f"{difference['function']}({difference['name']}, {difference['version']}, flags "
            f"{difference['flags']}), time {difference['time']}: {ours} instead of {drivers}")


def judge(tally, job, status):
    if status not in (0, 1):
        tally.bad("answers", f"status {status}{job.tail()}")
        return
    (_, said), = job.json()
    detail = (f"{said['names']} names, {said['compared']} answers, {said['found']} of them a "
              f"function; {said['differ']} differ, {said['written_though_failed']} written though failed")
    if said["differ"]:
        detail += ": " + "; ".join(map(describe, said["first"]))
    tally.verdict(status == 0 and said["compared"] > 0 and said["found"] > 0 and not said["differ"],
                  "cuGetProcAddress answers as the driver does", detail)


def check(machine, tally, options):
    # By default a tenant is refused functions that only a newer driver has. ALLOT_UNKNOWN=pass turns this off here.
    job = machine.tenant("answers", ["env", "ALLOT_UNKNOWN=pass",
                                     machine.build.program("gpu-answers")], ["--memory", "1GiB"])
    judge(tally, job, job.wait(RUN_S))
