"""Drives a real, headless Chromium by its DevTools protocol over a pair of pipes, without a port, a driver or a
library."""

import base64
import collections
import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import time

import pytest

# When the page first showed what is so now: its script counts the states in the document's data.
WATCH_STATES = """new MutationObserver((_, self) => {
  if (!document.documentElement?.dataset.states) return;
  window.shownAt = performance.now();
  self.disconnect();
}).observe(document, {subtree: true, attributes: true, attributeFilter: ["data-states"]})"""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_chromium():
    """None: there is none that starts. Ubuntu's package is a stub that asks for a snap."""
    for name in NAMES:
        path = shutil.which(name)
        if path:
            done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False,
                                  stdin=subprocess.DEVNULL)
            if done.returncode == 0 and "snap" not in done.stderr:
                return path
    return None


def kind_of(words):
    """Of a process, by its command line."""
    told = {name: value for name, _, value in (word.partition("=") for word in words)}
    return told.get("--utility-sub-type", told.get("--type", "browser")).partition(".")[0]


class Chromium:
    """`browser.open(url)` gives a Tab."""

    def __init__(self, directory, *options):
        to_read, self.write_fd = os.pipe()
        self.read_fd, to_write = os.pipe()

        def place():
            # Chromium reads 3 and writes 4; either may be the other's number here.
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_read, to_write)]
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        command = [find_chromium(), "--headless",
                   "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync",
                   "--disable-default-apps", "--disable-extensions", "--no-default-browser-check", "--mute-audio",
                   "--remote-debugging-pipe", f"--user-data-dir={directory}", *options, "about:blank"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, pass_fds=(3, 4), preexec_fn=place)
        os.close(to_read)
        os.close(to_write)
        self.rest = b""
        self.number = 0
        self.events = []
        self.tabs = []

    def message(self, seconds):
        """The next, or None."""
        deadline = time.monotonic() + seconds
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.read_fd], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                return None
            part = os.read(self.read_fd, 1 << 16)
            assert part, "Chromium has ended"
            self.rest += part
        one, _, self.rest = self.rest.partition(b"\0")
        return json.loads(one)

    def command(self, method, session=None, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if session:
            request["sessionId"] = session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.write_fd, data):]
        while True:
            message = self.message(60)
            assert message is not None, f"{method}: no answer in 60 s"
            if message.get("id") == self.number:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            self.events.append(message)

    def open(self, url, **more):
        self.tabs.append(Tab(self, url, **more))
        return self.tabs[-1]

    def close_tabs(self):
        while self.tabs:
            self.command("Target.closeTarget", targetId=self.tabs.pop().target)
        self.events.clear()

    def used_s(self):
        """{kind of process: {kind of thread: seconds of a processor so far}}, of all that Chromium has started."""
        used = collections.defaultdict(collections.Counter)
        todo = [self.process.pid]
        while todo:
            home = pathlib.Path(f"/proc/{todo.pop()}")
            try:
                words = (home / "cmdline").read_bytes().replace(b"\0", b" ").decode().split()
                for task in (home / "task").iterdir():
                    todo += map(int, (task / "children").read_text().split())
                    thread = "main" if task.name == home.name else (task / "comm").read_text().strip()
                    used[kind_of(words)][thread] += int((task / "schedstat").read_text().split()[0]) / 1e9
            except OSError:
                continue
        return used

    def close(self):
        os.close(self.write_fd)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read_fd)


class Tab:
    """`domains` are told of what happens, at a cost: of Accessibility, that all of the tree for readers of the screen is kept."""

    def __init__(self, browser, url, width=1280, height=1000, scheme="light",
                 domains=("Page", "Runtime", "Log", "Network", "Accessibility")):
        self.browser = browser
        self.target = browser.command("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.command("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in domains:
            self.command(f"{domain}.enable")
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.prefer(scheme)
        self.command("Page.navigate", url=url)

    def command(self, method, **parameters):
        return self.browser.command(method, self.session, **parameters)

    def prefer(self, scheme):
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme},
                                                             {"name": "prefers-reduced-motion", "value": "reduce"}])

    def run(self, script):
        """The value of a JavaScript expression, awaited."""
        answer = self.command("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, (script, answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait(self, script, seconds=30):
        """Until an expression is true; returns its value. What fails meanwhile, as where the page is not there yet, is not
        true."""
        deadline = time.monotonic() + seconds
        while True:
            answer = self.command("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
            value = None if "exceptionDetails" in answer else answer["result"].get("value")
            if value:
                return value
            if time.monotonic() > deadline:
                pytest.fail(f"{script}: not within {seconds} s: {answer}; the page: {self.run('document.body.innerText')}")
            time.sleep(0.05)

    def press(self, key, modifiers=0):
        codes = {"Enter": ("\r", 13), "Tab": ("", 9), "Escape": ("", 27), " ": (" ", 32)}
        text, code = codes.get(key, (key, ord(key.upper()) if len(key) == 1 else 0))
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.command("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                         modifiers=modifiers, **more)

    def type(self, text):
        self.command("Input.insertText", text=text)

    def picture(self, path, selector="body"):
        """Of an element, whole, also what is out of the window, which the page leaves out by content-visibility."""
        self.run("[...document.styleSheets].at(-1).insertRule('* { content-visibility: visible !important; }'), 0")
        box = self.run(f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                       "return [b.x + scrollX, b.y + scrollY, b.width, b.height]; })()")
        clip = dict(zip(("x", "y", "width", "height"), box), scale=1)
        answer = self.command("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def heard(self, method):
        """What was told under that name so far, of this tab."""
        self.run("0")
        return [event["params"] for event in self.browser.events
                if event["method"] == method and event.get("sessionId") == self.session]

    def complaints(self):
        """Errors and warnings: of the console, of the browser, and what no script caught."""
        told = [event["args"] for event in self.heard("Runtime.consoleAPICalled")
                if event["type"] in ("error", "warning", "assert")]
        told += [event["exceptionDetails"] for event in self.heard("Runtime.exceptionThrown")]
        told += [event["entry"] for event in self.heard("Log.entryAdded")
                 if event["entry"]["level"] in ("error", "warning")]
        return told

    def requests(self):
        """The addresses of all that the page asked for."""
        return [event["request"]["url"] for event in self.heard("Network.requestWillBeSent")]

    def load_times_ms(self, times=5):
        """Loads the page again so often; the medians of when it had something to see, and when it showed what is so now."""
        self.command("Page.addScriptToEvaluateOnNewDocument", source=WATCH_STATES)
        painted, shown = [], []
        for _ in range(times):
            self.command("Page.reload", ignoreCache=True)
            shown.append(self.wait("window.shownAt"))
            painted.append(self.wait("performance.getEntriesByName('first-contentful-paint')[0]?.startTime"))
        return sorted(painted)[times // 2], sorted(shown)[times // 2]

    def loaded_bytes(self):
        """What came over the wire, headers included, but for the stream."""
        return sum(event["encodedDataLength"] for event in self.heard("Network.loadingFinished"))
