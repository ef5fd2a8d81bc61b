"""The part of scripts/demo that runs after the build."""

import argparse
import ctypes
import dataclasses
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import demo_plot

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALLOT = ROOT / "build/allot"
LOAD = ROOT / "build/allot-load"
TORCH_LOAD = ROOT / "bench/load/torch_load.py"
PLOT = ROOT / "build/demo.svg"

GIB = 1 << 30
KERNEL_US = 1000
SPEED_WORTH_A_WORD = 0.98


@dataclasses.dataclass
class Tenant:
    name: str
    asked_pct: float
    quota_gib: float
    is_over: bool = False  # the one that asks for too much memory
    process: subprocess.Popen = None
    output: pathlib.Path = None
    got_pct: float = 0.0
    used_s: float = 0.0  # GPU time that the daemon charged
    charged_pct: float = 0.0  # the same, in percent of the load's run time
    held_gib: float = 0.0
    refused: str = ""
    series: list = dataclasses.field(default_factory=list)


class CannotRun(Exception):
    """The load can't run here; the text says why."""


def fail(words):
    sys.exit(f"demo: {words}")


def real_gpu():
    """The name of the first GPU, or None."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        if nvml.nvmlInit_v2() != 0:
            return None
        device, name = ctypes.c_void_p(), ctypes.create_string_buffer(96)
        found = (nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0 and
                 nvml.nvmlDeviceGetName(device, name, len(name)) == 0)
        nvml.nvmlShutdown()
        return name.value.decode() if found else None
    except (OSError, AttributeError):
        return None


def torch_model():
    """The model that this Python's PyTorch can train, or None without PyTorch."""
    if not importlib.util.find_spec("torch"):
        return None
    return "resnet18" if importlib.util.find_spec("torchvision") else "transformer"


def json_lines(text):
    lines = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                lines.append(json.loads(line))
            except ValueError:
                pass
    return lines


def run_alone(command):
    """Runs a load without allot to learn its cost on the idle GPU; returns its JSON lines."""
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    lines = json_lines(result.stdout)
    if result.returncode != 0 or not lines:
        raise CannotRun(f"{command[0]}: {(result.stderr or result.stdout).strip()[-300:]}")
    return lines


class LoadWork:
    """Kernels of known cost: a tenant's share is its work, in GPU time, over the time that this took."""

    def __init__(self, simulated, seconds):
        # The simulated card, its tenants and the daemon share the machine's processors, so shares
        # are less exact there: with two processors each tenant was 0.1 to 0.7 points short in most runs.
        self.tolerance_points = 2 if simulated else 1
        self.tolerance_text = f"{self.tolerance_points} point{'s' if simulated else ''}"
        self.what = f"kernels of {KERNEL_US / 1000:g} ms, {seconds:g} s"
        self.seconds = seconds
        self.simulated = simulated
        self.start_in_s = 2 if simulated else 5
        self.kernel = ["--kernel-us", str(KERNEL_US)]
        if not simulated:
            turns = run_alone([LOAD, "--calibrate-only", "--json", *self.kernel])[-1]["iters"]
            self.kernel += ["--iters", str(turns)]

    def quota_gib(self, asked_pct):
        return {45: 16, 30: 8, 15: 4}[asked_pct]

    def command(self, tenant, start_at):
        over = ["--alloc-over"] if tenant.is_over else []
        load = [LOAD, *self.kernel, "--seconds", str(self.seconds), "--json",
                "--start-at", f"{start_at:.3f}", "--mib", str(int(tenant.quota_gib * 1024 * 0.75)),
                *over]
        # The tenant stays until the demo has read what it was charged.
        return ["sh", "-c", '"$@" && { read -r line || :; }', "sh", *load] if self.simulated else load

    def stays(self, tenant):
        """Whether the load has ended, and its tenant waits until it may end too."""
        lines = json_lines(tenant.output.read_text()) if self.simulated else []
        return bool(lines) and "share_pct" in lines[-1]

    def speed(self, tenants):
        """The part of the charged time in which the card worked. A simulated card pauses while the machine's
        processors are busy with other programs; no tenant loses that time to another tenant."""
        charged = sum(tenant.charged_pct for tenant in tenants)
        if not self.simulated or not charged:
            return 1.0
        return min(1.0, sum(tenant.got_pct for tenant in tenants) / charged)

    def read(self, tenant, lines):
        last = lines[-1]
        tenant.got_pct = last["share_pct"]
        tenant.charged_pct = 100 * tenant.used_s / last["elapsed_s"]
        before_s = 0.0
        for line in lines[:-1]:
            if "t_s" in line and line["t_s"] - before_s > 0.5:
                tenant.series.append((line["t_s"],
                                      100 * line["work_s"] / (line["t_s"] - before_s)))
                before_s = line["t_s"]
        if last.get("refused"):
            tenant.refused = (f"asked for {last['refused']['asked_bytes'] / GIB:.2f} GiB at once: "
                              f"{last['refused']['error']}")

    def tolerance(self, asked_pct):
        return self.tolerance_points


class TorchWork:
    """Trainings: a tenant's share is the time of a step alone on the GPU over its time in the tenant."""

    tolerance_text = "1 point, or 3 % of the share"
    BATCH = {"resnet18": 128, "transformer": 256}

    def __init__(self, model, seconds):
        self.model = model
        self.batch = self.BATCH[model]
        self.seconds = min(seconds, 14)
        self.what = f"PyTorch, {model}, {self.seconds:g} s"
        self.start_in_s = 0
        # Measures both likely batch sizes in one process, because PyTorch takes long to start.
        alone = run_alone(self.load([self.batch, 2 * self.batch], 3))
        self.native_ms = {line["batch"]: line["step_ms_mean"] for line in alone}
        self.peak_gib = alone[0]["peak_reserved_bytes"] / GIB

    def load(self, batches, seconds, *more):
        return [sys.executable, TORCH_LOAD, "--model", self.model, "--batch",
                ",".join(map(str, batches)), "--seconds", str(seconds), "--warmup", "5", "--json",
                *more]

    def quota_gib(self, asked_pct):
        # Enough for one batch and its context, and far too little for the four batches that one tenant asks for.
        return round(1.2 * self.peak_gib + 0.8, 1)

    def command(self, tenant, start_at):
        if tenant.is_over:
            return self.load([self.batch * 4], self.seconds, "--oom-retry")
        return self.load([self.batch], self.seconds)

    def stays(self, tenant):
        return False

    def speed(self, tenants):
        return 1.0

    def read(self, tenant, lines):
        last = lines[-1]
        batch = last["batch"]
        if batch not in self.native_ms:
            self.native_ms[batch] = run_alone(self.load([batch], 2))[-1]["step_ms_mean"]
        tenant.got_pct = 100 * self.native_ms[batch] / last["step_ms_mean"]
        refusals = [line for line in lines if line.get("fits") is False]
        if refusals:
            tenant.refused = (f"batch {refusals[0]['try_batch']}: torch.OutOfMemoryError; "
                              f"went on with {batch}")

    def tolerance(self, asked_pct):
        return max(1.0, 0.03 * asked_pct)


def choose_work(options):
    """The work for a real GPU: PyTorch where it is installed and works, else our own kernels."""
    model = None if options.load else torch_model()
    if model:
        try:
            return TorchWork(model, options.seconds)
        except CannotRun as error:
            print(f"PyTorch does not train here, so the work is our own kernels: {error}\n")
    return LoadWork(False, options.seconds)


class Demo:
    def __init__(self, options):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="allot-demo-"))
        self.environment = dict(os.environ)
        self.gpu = None if options.sim else real_gpu()
        self.sim = []
        self.notes = []
        if not self.gpu:
            # The demo's own daemon and card: no other tenants use them.
            spec = options.sim or "h200"
            self.sim = ["--sim", spec]
            self.environment["ALLOT_RUN_DIR"] = str(self.scratch / "run")
            self.environment.pop("CUDA_VISIBLE_DEVICES", None)
            self.gpu = f"simulated GPU ({spec})"
            self.work = LoadWork(True, options.seconds)
        else:
            self.work = choose_work(options)
        self.tenants = [Tenant(name, asked, self.work.quota_gib(asked), is_over)
                        for name, asked, is_over in (("a", 45, False), ("b", 30, False),
                                                     ("c", 15, True))]

    def start(self):
        start_at = time.time() + self.work.start_in_s
        for tenant in self.tenants:
            tenant.output = self.scratch / f"{tenant.name}.out"
            command = [ALLOT, "run", *self.sim, "--name", f"demo-{tenant.name}",
                       "--memory", f"{tenant.quota_gib:g}GiB", "--cores", f"{tenant.asked_pct:g}",
                       "--", *self.work.command(tenant, start_at)]
            with open(tenant.output, "w") as out:
                tenant.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out,
                                                  env=self.environment)

    def list(self):
        result = subprocess.run([ALLOT, "ps", "--json", *self.sim], capture_output=True, text=True,
                                env=self.environment, check=False)
        try:
            return json.loads(result.stdout)
        except ValueError:
            return {"devices": [], "tenants": []}

    def watch(self):
        """Shows the live table until all tenants have ended, and records the daemon's figures meanwhile."""
        interval = "1" if sys.stdout.isatty() else "5"
        table = subprocess.Popen([ALLOT, "ps", *self.sim, "--watch", interval],
                                 env=self.environment)
        begin = time.monotonic()
        shares = {tenant.name: [] for tenant in self.tenants}
        try:
            while any(tenant.process.poll() is None for tenant in self.tenants):
                time.sleep(1)
                staying = [tenant for tenant in self.tenants if self.work.stays(tenant)]
                for entry in self.list()["tenants"]:
                    for tenant in self.tenants:
                        if entry["name"] == f"demo-{tenant.name}" and entry["devices"]:
                            device = entry["devices"][0]
                            held_gib = device["memory_used_bytes"] / GIB
                            tenant.held_gib = max(tenant.held_gib, held_gib)
                            tenant.used_s = device["used_s"]
                            shares[tenant.name].append((time.monotonic() - begin,
                                                        device.get("got_1s_pct") or 0.0))
                for tenant in staying:
                    tenant.process.stdin.close()
        finally:
            table.terminate()
            table.wait()
        print()
        return shares

    def finish(self, shares):
        for tenant in self.tenants:
            lines = json_lines(tenant.output.read_text())
            if tenant.process.returncode != 0 or not lines:
                fail(f"{tenant.name} ended with status {tenant.process.returncode}: "
                     f"{tenant.output.read_text().strip()[-300:]}")
            self.work.read(tenant, lines)
            if not tenant.series:
                tenant.series = shares[tenant.name]

    def report(self):
        """Prints what each tenant asked for and got; returns a text for each share that is off."""
        wrong = []
        speed = self.work.speed(self.tenants)
        if speed < SPEED_WORTH_A_WORD:
            self.notes.append(f"This machine's processors were busy: the simulated GPU worked in only "
                              f"{100 * speed:.1f} % of the time charged. Shares are of the work done.")
            print(f"{self.notes[-1]}\n")
            for tenant in self.tenants:
                tenant.got_pct /= speed
        print(f"{'':8}{'COMPUTE':>9}{'':18}{'MEMORY':>9}\n"
              f"{'TENANT':8}{'asked':>9}{'got':>9}{'off':>9}{'quota':>11}{'held':>11}")
        for tenant in self.tenants:
            off = tenant.got_pct - tenant.asked_pct
            print(f"{tenant.name:8}{tenant.asked_pct:>7.1f} %{tenant.got_pct:>7.2f} %{off:>+9.2f}"
                  f"{tenant.quota_gib:>7.1f} GiB{tenant.held_gib:>7.1f} GiB")
            if abs(off) > self.work.tolerance(tenant.asked_pct):
                wrong.append(f"{tenant.name} is off by {off:+.2f} points")
            if tenant.held_gib > tenant.quota_gib * 1.0001:
                wrong.append(f"{tenant.name} held more than its quota")
            if tenant.is_over and not tenant.refused:
                wrong.append(f"{tenant.name} was not refused what exceeds its quota")
        for tenant in self.tenants:
            if tenant.refused:
                print(f"\n{tenant.name}, over its quota of {tenant.quota_gib:g} GiB, "
                      f"{tenant.refused}; it went on.")
        return wrong

    def draw(self):
        notes = self.notes + [
            f"{t.name}, over its quota of {t.quota_gib:g} GiB, {t.refused}; it went on."
            for t in self.tenants if t.refused]
        demo_plot.draw(PLOT, f"{self.gpu}: {self.work.what}; shares are caps (--cores)",
                       [dataclasses.asdict(dataclasses.replace(t, process=None))
                        for t in self.tenants], " ".join(notes))

    def stop(self):
        for tenant in self.tenants:
            if tenant.process and tenant.process.poll() is None:
                tenant.process.terminate()
                tenant.process.wait()
        deadline = time.monotonic() + 8
        while self.is_running() and time.monotonic() < deadline:
            time.sleep(0.1)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def is_running(self):
        """Whether the demo's daemon or card still runs: both end by themselves once nothing uses them."""
        for path in self.scratch.glob("run/*/*.sock"):
            for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
                with socket.socket(socket.AF_UNIX, kind) as probe:
                    if probe.connect_ex(str(path)) == 0:
                        return True
        return False


def main():
    parser = argparse.ArgumentParser(prog="demo")
    parser.add_argument("--sim", metavar="SPEC")
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    # SIGTERM becomes an exception, so that `finally` ends the tenants and the demo's daemon.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    for part in (ALLOT, LOAD):
        if not part.exists():
            fail(f"{part} is missing; run scripts/build")
    try:
        demo = Demo(options)
    except CannotRun as error:
        fail(error)
    try:
        print(f"on: {demo.gpu}\nwork: {demo.work.what}\n", flush=True)
        demo.start()
        shares = demo.watch()
        demo.finish(shares)
        wrong = demo.report()
        demo.draw()
    except CannotRun as error:
        fail(error)
    finally:
        demo.stop()
    print(f"\nplot: {PLOT.relative_to(ROOT)}; it ran on: {demo.gpu}")
    if wrong:
        print(f"demo: not as asked (within {demo.work.tolerance_text}): {'; '.join(wrong)}")
        sys.exit(1)
    print(f"every share is within {demo.work.tolerance_text} of what was asked for")


main()
