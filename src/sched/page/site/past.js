// How much was promised, and how many waited: what allot-scheduler has kept, and from then on a moment a second.
import { List, make, percent, setText, variable } from "./format.js";

const KEEP_S = 600;
const EVERY_S = 1;
const HEIGHT = 180;
const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

// All that there is, but a minute at least.
function timeRange(_, least, most) {
  const end = most ?? Date.now() / 1000;
  return [Math.max(end - KEEP_S, Math.min(least ?? end, end - 60)), end];
}

class Plot {
  constructor(id, lines, most) {
    Object.assign(this, { element: document.getElementById(id), lines, most });
    new ResizeObserver(() => this.plot?.setSize({ width: this.width, height: HEIGHT })).observe(this.element);
  }

  get width() {
    return Math.max(200, this.element.clientWidth);
  }

  build(record) {
    const common = { stroke: variable("soft"), grid: { stroke: variable("track"), width: 1 }, ticks: { stroke: variable("track") } };
    this.plot?.destroy();
    this.plot = new uPlot({
      width: this.width, height: HEIGHT, legend: { show: false }, cursor: { show: false },
      series: [{}, ...this.lines.map(({ colour, dash }) =>
        ({ stroke: variable(colour), width: 2, dash, points: { show: false } }))],
      axes: [{ ...common, space: 90, values: (_, times) => times.map((time) => clock.format(time * 1000)) }, { ...common, size: 48 }],
      scales: { x: { time: true, range: timeRange }, y: { range: (_, __, max) => [0, Math.max(this.most, (max ?? 0) * 1.05)] } },
    }, this.data(record), this.element);
  }

  data(record) {
    return [record.times, ...this.lines.map(({ field }) => record[field])];
  }

  show(record) {
    if (!this.plot) this.build(record);
    else this.plot.setData(this.data(record));
  }
}

class Row {
  constructor({ title }) {
    this.cells = Array.from({ length: 3 }, () => make("td", { className: "number" }));
    this.element = make("tr", {}, make("th", { scope: "row" }, title), ...this.cells);
  }

  show({ values, text }) {
    if (!values.length) return;
    [values.at(-1), Math.min(...values), Math.max(...values)].forEach((value, i) => setText(this.cells[i], text(value)));
  }
}

export class Past {
  constructor() {
    this.load({ ages_s: [], memory_pct: [], cores_pct: [], pods_waiting: [] });
    this.plots = [
      new Plot("chart-promised", [{ field: "cores", colour: "m0" }, { field: "memory", colour: "m1", dash: [8, 4] }], 100),
      new Plot("chart-waiting", [{ field: "waiting", colour: "m2" }], 5),
    ];
    this.table = new List(document.getElementById("past-table").tBodies[0], (item) => item.title, (item) => new Row(item));
  }

  load(history, now = Date.now() / 1000) {
    this.record = {
      times: history.ages_s.map((age) => now - age), memory: history.memory_pct, cores: history.cores_pct,
      waiting: history.pods_waiting,
    };
  }

  // Colours have changed.
  rebuild() {
    this.plots?.forEach((plot) => plot.plot && plot.build(this.record));
  }

  add(all, now = Date.now() / 1000) {
    const { record } = this;
    if (now - (record.times.at(-1) ?? 0) < EVERY_S - 0.05) return;
    record.times.push(now);
    record.memory.push(all.memory_bytes ? (100 * all.promised_bytes) / all.memory_bytes : 0);
    record.cores.push(all.cores_pct ? (100 * all.promised_cores_pct) / all.cores_pct : 0);
    record.waiting.push(all.pods_waiting);
    let old = 0;
    while (record.times[old] < now - KEEP_S) old++;
    for (const list of Object.values(record)) list.splice(0, old);
    this.plots.forEach((plot) => plot.show(record));
    this.table.show([
      { title: "Compute promised", values: record.cores, text: percent },
      { title: "Memory promised", values: record.memory, text: percent },
      { title: "Pods that wait", values: record.waiting, text: String },
    ]);
  }
}
