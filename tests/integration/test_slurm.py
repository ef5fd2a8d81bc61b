"""docs/guide/slurm.md on a Slurm cluster of one node. The settings, scripts and command lines of the page are used unchanged,
except for paths that a test can't have."""

import pytest

import slurm
from machines import BUILD, ROOT, wait_until
from test_docs import fences

pytestmark = pytest.mark.skipif(bool(slurm.why_not()), reason=f"Slurm: {slurm.why_not()}")
PAGE = ROOT / "docs/guide/slurm.md"

# A user's training: two seconds of work on the GPU. It finds the simulated driver itself, as if that were installed.
TRAIN = """import os
os.environ.setdefault("LD_LIBRARY_PATH", "")
os.environ["LD_LIBRARY_PATH"] += ":{build}/sim"
os.execv("{build}/allot-load", ["allot-load", "--seconds", "2", "--mib", "512", "--json", "--report-every", "0"])
"""


class Site:
    """A cluster with the page's settings and scripts; its node's first GPU is simulated."""

    def __init__(self, directory, machine):
        self.directory, self.machine = directory / "c", machine
        settings, = [text for language, text in fences(PAGE) if language == "text"]
        gres, conf = [], []
        for line in self.with_test_paths(settings).splitlines():
            (gres if line.startswith("Name=") else conf).append(line.replace("NodeName=gpu01", f"NodeName={self.host()}"))
        # Slurm needs only a device file that exists.
        devices = "\n".join(gres).replace("/dev/nvidia0", "/dev/null") + "\n"
        self.slurm = slurm.Slurm(self.directory, "\n".join(conf), devices)
        self.scripts = [text for language, text in fences(PAGE) if language == "sh" and text.startswith("#!")]
        for text in self.scripts:
            head = text.splitlines()[1].removeprefix("# ").rstrip(":").split()[0].rstrip(":")
            path = self.directory / head.rpartition("/")[2] if head.startswith("/") else self.directory / "bin" / head
            self.write_program(path, self.with_test_paths(text))
        self.line, = [text.strip() for language, text in fences(PAGE) if language == "sh" and text.startswith("srun")]
        # An installed `allot` would use the system's daemon; this one uses the test's.
        environment = " ".join(f"{name}='{value}'" for name, value in machine.environment.items() if name.startswith("ALLOT_"))
        text = f'#!/bin/sh\nverb=$1\nshift\n{environment} exec {BUILD}/allot "$verb" {" ".join(machine.sim)} "$@"\n'
        self.write_program(self.directory / "bin/allot", text)
        self.write_program(self.directory / "bin/logger",
                           f'#!/bin/sh\n{{ echo "$*"; cat; echo end; }} >>{self.directory}/logged\n')
        (self.directory / "train.py").write_text(TRAIN.format(build=BUILD))

    def host(self):
        return slurm.socket.gethostname().partition(".")[0]

    @staticmethod
    def write_program(path, text):
        path.write_text(text)
        path.chmod(0o755)

    def with_test_paths(self, text):
        """The text with this test's paths instead of the page's."""
        text = text.replace("/etc/slurm/", f"{self.directory}/")
        text = text.replace("/usr/local/lib/allot/liballot.so", str(BUILD / "liballot.so"))
        # Slurm runs an epilog without a PATH, and a shell then searches the directories of installed programs.
        text = text.replace("allot ps |", f"{self.directory}/bin/allot ps |")
        return text.replace("| logger", f"| {self.directory}/bin/logger")

    def logged(self):
        path = self.directory / "logged"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def site(tmp_path, machine):
    site = Site(tmp_path, machine)
    assert len(site.scripts) == 3
    with site.slurm:
        yield site


def test_a_job_is_a_tenant_with_its_requested_share(site, machine):
    job = site.slurm.run(site.line)
    name = "job-1-0"
    tenant = wait_until(lambda: job.poll() is not None or (machine.tenants().get(name) or {}).get("processes") and
                        machine.tenants()[name], what="the job's tenant")
    assert tenant is not True, (job.communicate(), site.slurm.said())
    device, = tenant["devices"]
    assert device["cores_pct"] == 30 and device["memory_quota_bytes"] == 30 * 1400 << 20
    output, errors = job.communicate(timeout=60)
    assert job.returncode == 0, (errors, site.slurm.said())
    assert "share_pct" in output
    # A tenant with the name of the next job, which outlives that job: the job's epilog reports it.
    machine.start("--name", "job-2-7", "--", "sleep", "600")
    wait_until(lambda: "job-2-7" in machine.tenants(), what="a tenant that outlives its job")
    done = site.slurm.run("srun --gres=shard:30 shared true")
    assert done.wait(timeout=60) == 0, done.stderr.read()
    wait_until(lambda: site.logged().count("end\n") == 2, what="both epilogs")
    first, second = site.logged().split("end\n")[:2]
    assert first == "-t allot-epilog\n" and "job-2-7" in second and second.count("\n") == 2, (first, second)


def test_without_the_wrapper_there_is_no_gpu(site, machine):
    job = site.slurm.run("srun --gres=shard:30 python3 train.py")
    output, errors = job.communicate(timeout=100)
    assert job.returncode != 0 and "share_pct" not in output and "use-the-wrapper" in errors, (output, errors)
    # A job that requested no part of a GPU is unchanged.
    job = site.slurm.run("srun env")
    output, errors = job.communicate(timeout=60)
    assert job.returncode == 0 and "LD_PRELOAD" not in output and "SLURM_JOB_ID=2" in output, (output, errors)
