"""Measures the cost of a web page: processor time of processes and threads, and a browser's work for each state it receives."""

import pathlib
import re
import time


def cpu_s(pid, tid=None):
    """Returns the CPU seconds of all threads of a process, or of one thread."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir() if tid is None else [pathlib.Path(f"/proc/{pid}/task/{tid}")]
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


class Watch:
    """Measures the CPU time of a process, or of one of its threads, and wall time, from construction to end()."""

    def __init__(self, *target):
        self.target, self.begun, self.before = target, time.monotonic(), cpu_s(*target)

    def end(self):
        """Returns (CPU seconds, wall seconds)."""
        return cpu_s(*self.target) - self.before, time.monotonic() - self.begun


def resident_bytes(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) << 10


# Counts the page's changes of the document, and its drawings, from now on.
COUNT = """(() => {
  window.done = {texts: 0, nodes: 0, draws: 0, boards: 0};
  new MutationObserver((records) => {
    for (const {type, target, addedNodes, removedNodes} of records)
      if (type === "characterData") done.texts++;
      else if (!target.closest("details")) done.nodes += addedNodes.length + removedNodes.length;
  }).observe(document.body, {subtree: true, childList: true, characterData: true});
  const clear = CanvasRenderingContext2D.prototype.clearRect;
  CanvasRenderingContext2D.prototype.clearRect = function (...rest) { done[this.canvas.className === "board" ? "boards" : "draws"]++; return clear.apply(this, rest); };
})()"""
STATES = "Number(document.documentElement.dataset.states)"
METRICS = ("TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration", "LayoutCount", "RecalcStyleCount")


def count_changes(tab, seconds):
    """Counts the page's changes for `seconds`. Returns ({"texts", "nodes", "draws", "boards": number of changes}, number of
    states), and prints the numbers per state."""
    tab.run(COUNT)
    seen = tab.run(STATES)
    time.sleep(seconds)
    done, states = tab.run("window.done"), tab.run(STATES) - seen
    print({name: f"{count / max(states, 1):.1f} a state" for name, count in done.items()})
    return done, states


def measure(browser, tab, what, seconds):
    """Measures a page for `seconds`. Returns {metric: milliseconds of the page's main thread, or a count, per state; "all_pct",
    "main_pct": percent of a core in all processes, and in that thread}. Prints these, and CPU time by process."""
    tab.command("Performance.enable", timeDomain="threadTicks")

    def figures():
        metrics = {one["name"]: one["value"] for one in tab.command("Performance.getMetrics")["metrics"]}
        return metrics, browser.used_s(), tab.run(STATES), time.monotonic()

    before, used, seen, begun = figures()
    time.sleep(seconds)
    after, used_then, then, ended = figures()
    assert then > seen
    passed_s, states = ended - begun, then - seen
    each = {name: (after[name] - before[name]) * (1000 if name.endswith("Duration") else 1) / states for name in METRICS}
    parts = {f"{process} {thread}": 100 * (value - used[process][thread]) / passed_s
             for process, threads in used_then.items() for thread, value in threads.items()}
    most = sorted(parts, key=parts.get, reverse=True)[:6]
    print(f"{what}: {sum(parts.values()):.2f} % of a core in all processes, at {states / passed_s:.1f} states a second: " +
          ", ".join(f"{name} {parts[name]:.2f}" for name in most) +
          "; a state: " + ", ".join(f"{name} {value:.2f}" for name, value in each.items()))
    return {**each, "all_pct": sum(parts.values()), "main_pct": parts.get("renderer main", 0)}
