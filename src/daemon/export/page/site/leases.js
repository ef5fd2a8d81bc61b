// Which tenant had which GPU in the last second: a lane for each GPU, and a table with the same figures.
import { List, badge, colourOf, make, markOf, percent, setText, variable } from "./format.js";
import { FoldedList, watchView } from "./view.js";

const SHOWN_MS = 1000;
const GAP_PX = 1;
const EDGE_PX = 6; // in a narrower block the edge would cover the colour

class Lane {
  constructor({ index }) {
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.element = make("div", { className: "lane" }, make("span", {}, `GPU ${index}`), this.canvas);
    this.size = { width: 0, height: 0 };
    new ResizeObserver(([{ contentRect }]) => this.fit(contentRect)).observe(this.canvas);
    watchView(this.canvas, (isSeen) => {
      this.isSeen = isSeen;
      this.draw();
    });
  }

  // Keeps the size: asking the element for it at each state would force a layout.
  fit({ width, height }) {
    this.size = { width, height };
    this.canvas.width = Math.round(width * devicePixelRatio);
    this.canvas.height = Math.round(height * devicePixelRatio);
    this.draw();
  }

  // Draws the lane, except one that was empty and still is.
  show({ spans, now }) {
    const isStill = !spans.length && !this.spans?.length;
    Object.assign(this, { spans, now });
    if (!isStill) this.draw();
  }

  draw() {
    if (!this.isSeen || !this.spans) return;
    const { canvas, spans, now } = this;
    const { width, height } = this.size;
    const scale = devicePixelRatio;
    const paint = canvas.getContext("2d");
    paint.setTransform(scale, 0, 0, scale, 0, 0);
    paint.clearRect(0, 0, width, height);
    paint.font = "600 12px system-ui, sans-serif";
    paint.textBaseline = "middle";
    for (const span of spans) {
      const left = ((span.begin - now) / SHOWN_MS + 1) * width;
      const right = ((span.begin + span.length - now) / SHOWN_MS + 1) * width;
      this.block(paint, span, Math.max(0, left), Math.max(1, right - Math.max(0, left) - GAP_PX), height);
    }
  }

  // Draws a span in its tenant's colour and, where there is room, with its letter or name, so that nobody needs the colour.
  block(paint, span, left, width, height) {
    const mark = markOf(span.tenant);
    paint.fillStyle = colourOf(mark);
    const inset = span.kind === "free" ? 7 : 3;
    paint.fillRect(left, inset, width, height - 2 * inset);
    if (span.kind !== "free" && width >= EDGE_PX) {
      paint.strokeStyle = variable("ink");
      paint.strokeRect(left + 0.5, inset + 0.5, Math.max(0, width - 1), height - 2 * inset - 1);
    }
    const text = [`${mark.letter} ${span.tenant}`, mark.letter].find((words) => paint.measureText(words).width + 6 < width);
    if (!text) return;
    paint.fillStyle = variable("paper");
    paint.fillText(text, left + 3, height / 2);
  }
}

class TableRow {
  constructor({ index, tenant }) {
    this.cells = Array.from({ length: 3 }, () => make("td", { className: "number" }));
    this.element = make("tr", {}, make("td", {}, String(index)), make("th", { scope: "row" }, badge(tenant), tenant), ...this.cells);
  }

  show({ turns, held }) {
    [String(turns), `${(held / turns).toFixed(1)} ms`, percent((100 * held) / SHOWN_MS)]
      .forEach((text, i) => setText(this.cells[i], text));
  }
}

export class Leases {
  constructor() {
    this.spans = new Map(); // GPU index -> (span number -> span)
    this.lanes = new List(document.getElementById("leases"), (item) => item.index, (item) => new Lane(item));
    this.table = new FoldedList(document.getElementById("lease-table").tBodies[0],
      (item) => `${item.index}/${item.tenant}`, (item) => new TableRow(item));
  }

  clear() {
    this.spans.clear();
  }

  take(state) {
    for (const { index, spans } of state.leases) {
      const known = this.spans.get(index) ?? new Map();
      this.spans.set(index, known);
      for (const [number, tenant, begin, length, kind] of spans) known.set(number, { tenant, begin, length, kind });
      for (const [number, span] of known)
        if (span.begin + span.length < state.clock_ms - SHOWN_MS) known.delete(number);
    }
  }

  show(state) {
    this.take(state);
    const lanes = state.leases.map(({ index }) => ({ index, now: state.clock_ms, spans: [...this.spans.get(index).values()] }));
    this.lanes.show(lanes);
    this.table.show(() => this.rowsOf(lanes));
  }

  rowsOf(lanes) {
    const rows = new Map();
    for (const { index, spans, now } of lanes)
      for (const span of spans) {
        const key = `${index}/${span.tenant}`;
        const row = rows.get(key) ?? { index, tenant: span.tenant, turns: 0, held: 0 };
        row.turns++;
        row.held += span.begin + span.length - Math.max(span.begin, now - SHOWN_MS);
        rows.set(key, row);
      }
    return [...rows.values()].sort((a, b) => a.index - b.index || (a.tenant < b.tenant ? -1 : 1));
  }
}
