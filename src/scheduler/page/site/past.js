// Charts of how much was promised and how many pods waited: allot-scheduler's history, then one sample a second.
import { make, percent, setText, variable } from "./format.js";
import { KEEP_S, Plot } from "./plot.js";
import { FoldedList } from "./view.js";

const EVERY_S = 1;

class FieldsPlot extends Plot {
  constructor(id, fields, most) {
    super(document.getElementById(id), { height: 180, most });
    this.fields = fields;
    this.paint();
  }

  paint() {
    this.setLines(this.fields.map(({ colour, dash }) => ({ stroke: variable(colour), width: 2, dash })));
  }

  showOf(record) {
    this.show([record.times, ...this.fields.map(({ field }) => record[field])]);
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
      new FieldsPlot("chart-promised", [{ field: "cores", colour: "m0" }, { field: "memory", colour: "m1", dash: [8, 4] }], 100),
      new FieldsPlot("chart-waiting", [{ field: "waiting", colour: "m2" }], 5),
    ];
    this.table = new FoldedList(document.getElementById("past-table").tBodies[0], (item) => item.title, (item) => new Row(item));
  }

  load(history, now = Date.now() / 1000) {
    this.record = {
      times: history.ages_s.map((age) => now - age), memory: history.memory_pct, cores: history.cores_pct,
      waiting: history.pods_waiting,
    };
  }

  // Call when the theme's colours have changed.
  rebuild() {
    for (const plot of this.plots) {
      plot.paint();
      plot.draw();
    }
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
    this.plots.forEach((plot) => plot.showOf(record));
    this.table.show(() => [
      { title: "Compute promised", values: record.cores, text: percent },
      { title: "Memory promised", values: record.memory, text: percent },
      { title: "Waiting pods", values: record.waiting, text: String },
    ]);
  }
}
