"""Users who flood the daemon with requests, beside tenants at work and an honest user who wants to start one.

Each of USERS hostile users holds CONNECTIONS connections to the control socket. A quarter of them requests the list of tenants
in an endless loop, a quarter creates and removes tenants (which the daemon logs), a quarter never finishes its line, and a
quarter never reads an answer. In total the users also make REFUSED registrations a second, which their tenants' sockets refuse.
Two tenants of other users work with hard caps. An honest user creates a tenant and registers a process in it, again and
again; root requests the list.
"""

import json
import os
import selectors
import signal
import socket
import statistics
import struct
import time

from harness import stats
from harness.job import Failed
from harness.load import Kernel
from harness.result import Row, at_least, at_most

from .shares import capped

USERS, CONNECTIONS, REFUSED = 4, 256, 1000
REFUSED_A_ROUND = 4
FIRST_UID, HONEST_UID = 61001, 61100
KERNEL = Kernel(1000, 8192)
SHARES = (45, 30)
REGISTER_MS, POINTS = 100, 1
HONEST_PERIOD_S, ROOT_PERIOD_S = 0.02, 0.1
# abi/shm/registration.h
MAGIC, VERSION = 0x676C6C61, 1
REQUEST = struct.Struct("=IIiIQ")
REPLY_BYTES, REPLY_STATUS = 1024, struct.Struct("=IIi")


def line(op, **more):
    return json.dumps({"version": 1, "op": op, **more}).encode() + b"\n"


LIST = line("list")
CREATE = [{"index": 0, "memory_bytes": 1 << 20}]


class Control:
    """A connection that sends a request and waits for the answer."""

    def __init__(self, run_dir):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(os.path.join(run_dir, "allotd.sock"))
        self.lines = self.socket.makefile("rb")

    def ask(self, op, **more):
        self.socket.sendall(line(op, **more))
        return json.loads(self.lines.readline() or b'{"ok": false, "error": "closed"}')

    def tenant(self, name):
        """The path of the tenant's socket."""
        reply = self.ask("create", name=name, devices=CREATE, hold=True)
        if not reply["ok"]:
            raise Failed(f"tenant {name}: {reply['error']}")
        return reply["socket"]


def register(path, magic=MAGIC):
    """Registers a process at the tenant's socket. Returns the reply: 0 or an errno."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(30)
        s.connect(path)
        s.sendall(REQUEST.pack(magic, VERSION, os.getpid(), 0, 0))
        reply, fds, _, _ = socket.recv_fds(s, REPLY_BYTES, 4)
        for fd in fds:
            os.close(fd)
        return REPLY_STATUS.unpack_from(reply)[2] if reply else -1


class UserProcess:
    """A process of this user that runs `work`, a generator that yields its counters, until end() is called."""

    def __init__(self, uid, work, *arguments):
        self.read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
                ends = []
                signal.signal(signal.SIGTERM, lambda *_: ends.append(True))
                found = None
                for found in work(*arguments):
                    if ends:
                        break
                os.write(write, json.dumps(found).encode())
            except BaseException as error:      # the parent reports the error
                os.write(write, json.dumps({"error": repr(error)}).encode())
            os._exit(0)
        os.close(write)

    def end(self):
        """Ends the process and returns its counters."""
        os.kill(self.pid, signal.SIGTERM)
        with os.fdopen(self.read, "rb") as file:
            found = json.loads(file.read() or b'{"error": "it ended without a report"}')
        os.waitpid(self.pid, 0)
        if "error" in found:
            raise Failed(found["error"])
        return found


class Peer:
    """One hostile connection of one of four kinds: it requests the list, creates and removes tenants, never finishes its line,
    or never reads an answer."""

    KINDS = ("lists", "tenants", "unfinished", "unread")

    def __init__(self, path, place):
        self.place = place
        self.kind = self.KINDS[place % len(self.KINDS)]
        name = f"{os.getuid()}-{place}"
        self.lines = {"lists": [LIST], "tenants": [line("create", name=name, devices=CREATE), line("remove", name=name)],
                      "unfinished": [b"x" * 64], "unread": [LIST]}[self.kind]
        self.sent = 0
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.setblocking(False)
        try:
            self.socket.connect(path)
            self.say()
        except OSError:
            self.socket.close()
            raise

    def say(self):
        try:
            self.socket.send(self.lines[self.sent % len(self.lines)])
            self.sent += 1
        except BlockingIOError:
            pass


def attack(run_dir):
    path = os.path.join(run_dir, "allotd.sock")
    count = {"lists": 0, "tenants made or removed": 0, "refused requests": 0, "refused registrations": 0, "connections lost": 0}
    control = Control(run_dir)
    mine = control.tenant(f"hostile-{os.getuid()}")
    selector, unread, missing = selectors.DefaultSelector(), [], list(range(CONNECTIONS - 1))
    next_s = time.monotonic()

    def lose(peer):
        peer.socket.close()
        missing.append(peer.place)
        count["connections lost"] += 1

    while True:
        while missing:
            try:
                peer = Peer(path, missing[-1])
            except OSError:
                count["connections lost"] += 1
                break
            missing.pop()
            if peer.kind == "unread":
                unread.append(peer)
            else:
                selector.register(peer.socket, selectors.EVENT_READ, peer)
        if unread:
            peer = unread.pop(0)
            try:
                peer.say()
                unread.append(peer)
            except OSError:
                lose(peer)
        for key, _ in selector.select(0.002):
            peer = key.data
            try:
                data = peer.socket.recv(1 << 18)
            except ConnectionError:
                data = b""
            if not data:
                selector.unregister(peer.socket)
                lose(peer)
            elif data.endswith(b"\n"):
                done = {"lists": "lists", "tenants": "tenants made or removed"}.get(peer.kind)
                count[done if b'"ok":true' in data else "refused requests"] += 1
                try:
                    peer.say()
                except OSError:
                    selector.unregister(peer.socket)
                    lose(peer)
        # A busy machine may not reach the rate, and the caller must be able to end this: so a round makes only a few.
        for _ in range(REFUSED_A_ROUND):
            if time.monotonic() < next_s:
                break
            next_s += USERS / REFUSED
            count["refused registrations"] += register(mine, magic=1) != 0
        yield count


def time_registrations(run_dir):
    """Times, in ms, that registrations of an honest user's processes take."""
    control, times = Control(run_dir), []
    path = control.tenant("honest")
    while True:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            begin = time.monotonic()
            status = register(path)
            os.write(write, struct.pack("di", 1e3 * (time.monotonic() - begin), status))
            os._exit(0)
        os.close(write)
        took_ms, status = struct.unpack("di", os.read(read, 64))
        os.close(read)
        os.waitpid(pid, 0)
        if status:
            raise Failed(f"an honest process was refused: errno {status}")
        times.append(took_ms)
        yield {"times": times}
        time.sleep(HONEST_PERIOD_S)


def time_creations(run_dir):
    """Times, in ms, that an honest user needs to create a tenant, each over a new connection."""
    times = []
    while True:
        begin = time.monotonic()
        control = Control(run_dir)
        control.tenant("brief")
        times.append(1e3 * (time.monotonic() - begin))
        control.lines.close()
        control.socket.close()
        yield {"times": times}
        time.sleep(HONEST_PERIOD_S)


def time_lists(run_dir):
    """Times, in ms, that root's requests for the list take."""
    times = []
    while True:
        begin = time.monotonic()
        control = Control(run_dir)
        reply = control.ask("list")
        if not reply["ok"]:
            raise Failed(f"root was refused: {reply['error']}")
        times.append(1e3 * (time.monotonic() - begin))
        control.lines.close()
        control.socket.close()
        yield {"times": times}
        time.sleep(ROOT_PERIOD_S)


def seconds_of(settings):
    return 2 * (settings.seconds + 6)


def measure(bench, run_dir, hostile):
    """(shares of the working tenants, {request: times in ms}, sums of all hostile users' counters)"""
    watched = {"registration of an honest user's process": (HONEST_UID, time_registrations),
               "an honest user's tenant, from connecting": (HONEST_UID + 1, time_creations), "root's list": (0, time_lists)}
    processes = {}

    def begin():
        names = {tenant["name"] for tenant in Control(run_dir).ask("list")["tenants"]}
        if not {f"work-{pct}" for pct in SHARES} <= names:
            raise Failed(f"the tenants at work belong to another daemon: {run_dir} has {sorted(names)}")
        for user in range(USERS if hostile else 0):
            processes[user] = UserProcess(FIRST_UID + user, attack, run_dir)
        for what, (uid, work) in watched.items():
            processes[what] = UserProcess(uid, work, run_dir)
    found = {}
    try:
        outcomes = bench.loads.run([capped(f"work-{pct}", KERNEL, pct) for pct in SHARES], bench.settings.seconds,
                                   settle_s=3.0, events=[(0.2, begin)])
    finally:
        found = {what: process.end() for what, process in processes.items()}
    counts = {}
    for user in range(USERS if hostile else 0):
        for what, count in found[user].items():
            counts[what] = counts.get(what, 0) + count
    return [outcome.share_pct for outcome in outcomes], {what: found[what]["times"] for what in watched}, counts


def hostile(bench):
    if os.geteuid():
        bench.result.skip("all", "it needs root, to run as several users")
        return
    CREATE[0]["index"] = bench.machine.gpu_index
    with bench.machine.system_daemon() as run_dir:
        calm, calm_times, _ = measure(bench, run_dir, False)
        shares, times, counts = measure(bench, run_dir, True)
    lasted_s = bench.settings.seconds + 3
    for what, count in counts.items():
        row = Row(f"hostile: {what} a second", "1/s", count / lasted_s)
        bench.result.add(at_least(row, 0.9 * REFUSED) if what == "refused registrations" and not bench.machine.sim else row)
    for what, list_ in times.items():
        bench.result.add(Row(f"{what}: median", "ms", statistics.median(list_), statistics.median(calm_times[what])))
        row = Row(f"{what}: p99 of {len(list_)}", "ms", stats.percentile(list_, 99), stats.percentile(calm_times[what], 99))
        bench.result.add(at_most(row, bench.bar(REGISTER_MS, 5 * REGISTER_MS)))
    for pct, before, after in zip(SHARES, calm, shares):
        row = Row(f"share of the tenant capped at {pct} %, without and with them", "points", abs(after - before))
        bench.result.add(at_most(row, bench.bar(POINTS, 8 * POINTS)))
