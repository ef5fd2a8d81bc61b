// Compute and memory over time, by tenant, against limit and quota.
import { List, badge, bytes, colourOf, dashes, make, markOf, percent, setText, variable, GIB } from "./format.js";

const SHOWN_MAX = 6;
const HEIGHT = 220;

const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

function axes(suffix) {
  const common = { stroke: variable("soft"), grid: { stroke: variable("track"), width: 1 }, ticks: { stroke: variable("track") } };
  return [
    { ...common, space: 90, values: (_, times) => times.map((time) => clock.format(time * 1000)) },
    { ...common, size: 48, values: (_, values) => values.map((value) => `${value}${suffix}`) },
  ];
}

// All that there is, but a minute at least.
function timeRange(_, least, most) {
  const end = most ?? Date.now() / 1000;
  return [Math.max(end - 600, Math.min(least ?? end, end - 60)), end];
}

// At the end of each tenant's line, its letter: lines are not told apart by colour alone.
function drawLetters(plot, tenants) {
  const { ctx } = plot;
  ctx.save();
  ctx.font = `700 ${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  tenants.forEach((tenant, i) => {
    const values = plot.data[1 + 2 * i];
    const last = values.findLastIndex((value) => value !== null);
    if (last < 0) return;
    const mark = markOf(tenant.name);
    ctx.fillStyle = colourOf(mark);
    ctx.fillText(mark.letter, plot.valToPos(plot.data[0][last], "x", true) + 3 * devicePixelRatio,
      plot.valToPos(values[last], "y", true));
  });
  ctx.restore();
}

class Plot {
  constructor(element, field, bound, most) {
    Object.assign(this, { element, field, bound, most });
  }

  // Each tenant has two lines: what it has, and what it may have.
  build(tenants) {
    const lines = tenants.flatMap((tenant) => {
      const mark = markOf(tenant.name);
      const stroke = colourOf(mark);
      return [
        { label: tenant.name, stroke, width: 2, dash: dashes[mark.dash], points: { show: false } },
        { label: `${tenant.name} may`, stroke, width: 1, dash: [1, 4], points: { show: false } },
      ];
    });
    this.plot?.destroy();
    this.plot = new uPlot({
      width: Math.max(200, this.element.clientWidth), height: HEIGHT, legend: { show: false },
      cursor: { show: false }, padding: [null, 24, null, null],
      hooks: { draw: [(plot) => drawLetters(plot, tenants)] }, series: [{}, ...lines], axes: axes(""),
      scales: { x: { time: true, range: timeRange },
        y: { range: (_, __, max) => [0, Math.max(this.most, (max ?? 0) * 1.05)] } },
    }, this.data(tenants, { times: [], rows: new Map() }), this.element);
  }

  data(tenants, record, index) {
    return [record.times, ...tenants.flatMap((tenant) => {
      const row = record.rows.get(`${tenant.id}/${index}`);
      const none = new Array(record.times.length).fill(null);
      return [row?.[this.field] ?? none, row?.[this.bound] ?? none];
    })];
  }

  show(tenants, record, index) {
    this.plot.setData(this.data(tenants, record, index));
  }

  fit() {
    this.plot?.setSize({ width: Math.max(200, this.element.clientWidth), height: HEIGHT });
  }
}

class Legend {
  constructor(tenant) {
    this.element = make("li", {}, badge(tenant.name), tenant.name);
  }

  show() {}
}

class TableRow {
  constructor({ tenant }) {
    this.cells = Array.from({ length: 7 }, () => make("td", { className: "number" }));
    this.element = make("tr", {}, make("th", { scope: "row" }, badge(tenant.name), tenant.name), ...this.cells);
  }

  show({ row, device }) {
    const there = (row?.got ?? []).filter((value) => value !== null);
    const most = (values) => values.reduce((all, value) => Math.max(all, value ?? 0), 0);
    const mean = there.length ? there.reduce((all, value) => all + value, 0) / there.length : 0;
    const texts = [percent(device.got_1s_pct), percent(mean), percent(most(there)), percent(device.cores_limit_now_pct),
      bytes(device.memory_used_bytes), bytes(most(row?.used ?? []) * GIB), bytes(device.memory_quota_bytes)];
    texts.forEach((text, i) => setText(this.cells[i], text));
  }
}

export class Charts {
  constructor(tenants) {
    this.tenants = tenants;
    this.select = document.getElementById("chart-card");
    this.plots = [
      new Plot(document.getElementById("chart-compute"), "got", "limit", 100),
      new Plot(document.getElementById("chart-memory"), "used", "quota", 1),
    ];
    this.legend = new List(document.getElementById("legend"), (tenant) => tenant.id, (tenant) => new Legend(tenant));
    this.table = new List(document.getElementById("chart-table").tBodies[0], (item) => item.tenant.id,
      (item) => new TableRow(item));
    this.select.onchange = () => this.again();
    new ResizeObserver(() => this.plots.forEach((plot) => plot.fit())).observe(this.plots[0].element);
  }

  choose(state, index) {
    const here = state.tenants
      .map((tenant) => ({ tenant, device: tenant.devices.find((device) => device.index === index) }))
      .filter(({ tenant, device }) => device && this.tenants.matches(tenant));
    const weight = ({ device }) => device.got_60s_pct * 10 + (100 * device.memory_used_bytes) / (device.memory_quota_bytes || 1);
    // Who is shown stays, but where another has clearly more: lines that come and go can't be read.
    const stays = ({ tenant }) => (this.shown?.includes(tenant.id) ? 1.3 : 1);
    here.sort((a, b) => weight(b) * stays(b) - weight(a) * stays(a));
    return here.slice(0, SHOWN_MAX).sort((a, b) => (a.tenant.name < b.tenant.name ? -1 : 1));
  }

  again() {
    if (this.last) this.show(...this.last);
  }

  // Colours have changed.
  rebuild() {
    this.shown = null;
    this.again();
  }

  show(state, record) {
    this.last = [state, record];
    if (this.select.options.length !== state.devices.length)
      this.select.replaceChildren(...state.devices.map((device) =>
        make("option", { value: device.index }, `${device.index}: ${device.name}`)));
    const index = Number(this.select.value);
    const chosen = this.choose(state, index);
    const tenants = chosen.map(({ tenant }) => tenant);
    const ids = tenants.map((tenant) => tenant.id);
    if (ids.join() !== this.shown?.join()) {
      this.plots.forEach((plot) => plot.build(tenants));
      this.shown = ids;
    }
    this.plots.forEach((plot) => plot.show(tenants, record, index));
    this.legend.show(tenants);
    this.table.show(chosen.map(({ tenant, device }) => ({ tenant, device, row: record.rows.get(`${tenant.id}/${index}`) })));
  }
}
