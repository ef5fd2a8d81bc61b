"""Drives a real, headless Chromium by its DevTools protocol over a pair of pipes, without a port, a driver or a library."""

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

# Records when the page first showed live values. The page's script counts the states that it has shown in data-states.
WATCH_STATES = """new MutationObserver((_, self) => {
  if (!document.documentElement?.dataset.states) return;
  window.shownAt = performance.now();
  self.disconnect();
}).observe(document, {subtree: true, attributes: true, attributeFilter: ["data-states"]})"""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_chromium():
    """Returns the path of a Chromium that starts, or None. Ubuntu's package is a stub that asks for a snap."""
    for name in NAMES:
        path = shutil.which(name)
        if path:
            done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False,
                                  stdin=subprocess.DEVNULL)
            if done.returncode == 0 and "snap" not in done.stderr:
                return path
    return None


def kind_of(arguments):
    """Returns the kind of a Chromium process, such as "renderer", from its command line."""
    options = {name: value for name, _, value in (argument.partition("=") for argument in arguments)}
    return options.get("--utility-sub-type", options.get("--type", "browser")).partition(".")[0]


class Chromium:
    """One browser with its profile in `directory`. open(url) returns a Tab."""

    def __init__(self, directory, *options):
        to_read, self.write_fd = os.pipe()
        self.read_fd, to_write = os.pipe()

        def move_pipes():
            # Chromium reads from descriptor 3 and writes to 4. Here either number may be the other's, so both are copied first.
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_read, to_write)]
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        command = [find_chromium(), "--headless",
                   "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync",
                   "--disable-default-apps", "--disable-extensions", "--no-default-browser-check", "--mute-audio",
                   "--remote-debugging-pipe", f"--user-data-dir={directory}", *options, "about:blank"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, pass_fds=(3, 4), preexec_fn=move_pipes)
        os.close(to_read)
        os.close(to_write)
        self.buffer = b""
        self.number = 0
        self.events = []
        self.tabs = []

    def message(self, seconds):
        """Returns the next message, or None if none arrives in time."""
        deadline = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_fd], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                return None
            part = os.read(self.read_fd, 1 << 16)
            assert part, "Chromium has ended"
            self.buffer += part
        one, _, self.buffer = self.buffer.partition(b"\0")
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
        """Returns {kind of process: {name of thread: CPU seconds so far}} for all processes that Chromium has started."""
        used = collections.defaultdict(collections.Counter)
        todo = [self.process.pid]
        while todo:
            home = pathlib.Path(f"/proc/{todo.pop()}")
            try:
                arguments = (home / "cmdline").read_bytes().replace(b"\0", b" ").decode().split()
                for task in (home / "task").iterdir():
                    todo += map(int, (task / "children").read_text().split())
                    thread = "main" if task.name == home.name else (task / "comm").read_text().strip()
                    used[kind_of(arguments)][thread] += int((task / "schedstat").read_text().split()[0]) / 1e9
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
    """One page. `domains`: the DevTools domains whose events are received. Each has a cost: for Accessibility, Chromium keeps
    the whole accessibility tree."""

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
        """Returns the value of a JavaScript expression; a promise is awaited."""
        answer = self.command("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, (script, answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait(self, script, seconds=30):
        """Waits until an expression is true, and returns its value. An exception counts as false, because the page may not be
        loaded yet."""
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
        """Writes a PNG of a whole element. Parts outside the window are included, though the page skips them by
        content-visibility."""
        self.run("[...document.styleSheets].at(-1).insertRule('* { content-visibility: visible !important; }'), 0")
        box = self.run(f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                       "return [b.x + scrollX, b.y + scrollY, b.width, b.height]; })()")
        clip = dict(zip(("x", "y", "width", "height"), box), scale=1)
        answer = self.command("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def heard(self, method):
        """Returns the parameters of all events of this method that this tab has sent so far."""
        self.run("0")
        return [event["params"] for event in self.browser.events
                if event["method"] == method and event.get("sessionId") == self.session]

    def complaints(self):
        """Returns the errors and warnings of the console and of the browser, and uncaught exceptions."""
        found = [event["args"] for event in self.heard("Runtime.consoleAPICalled")
                 if event["type"] in ("error", "warning", "assert")]
        found += [event["exceptionDetails"] for event in self.heard("Runtime.exceptionThrown")]
        found += [event["entry"] for event in self.heard("Log.entryAdded")
                  if event["entry"]["level"] in ("error", "warning")]
        return found

    def requests(self):
        """Returns the URLs that the page has requested."""
        return [event["request"]["url"] for event in self.heard("Network.requestWillBeSent")]

    def load_times_ms(self, times=5):
        """Reloads the page `times` times. Returns the median times until the first paint and until live values are shown."""
        self.command("Page.addScriptToEvaluateOnNewDocument", source=WATCH_STATES)
        painted, shown = [], []
        for _ in range(times):
            self.command("Page.reload", ignoreCache=True)
            shown.append(self.wait("window.shownAt"))
            painted.append(self.wait("performance.getEntriesByName('first-contentful-paint')[0]?.startTime"))
        return sorted(painted)[times // 2], sorted(shown)[times // 2]

    def loaded_bytes(self):
        """Returns the bytes received over the network, including headers, but without the event stream."""
        return sum(event["encodedDataLength"] for event in self.heard("Network.loadingFinished"))
