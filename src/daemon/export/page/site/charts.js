// Charts of each tenant's compute and memory over time, with its limit and its quota.
import { List, badge, bytes, colourOf, dashes, make, markOf, percent, setText, GIB } from "./format.js";
import { Plot } from "./plot.js";
import { FoldedList } from "./view.js";

const SHOWN_MAX = 6;

// Writes each tenant's letter at the end of its line, so that readers need not tell lines apart by colour.
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

// Draws two lines for each tenant: what it uses, and what it may use at most.
class TenantsPlot extends Plot {
  constructor(id, field, bound, most) {
    super(document.getElementById(id), { height: 220, most, padding: [null, 24, null, null] });
    Object.assign(this, { field, bound });
  }

  setTenants(tenants) {
    this.setLines(tenants.flatMap((tenant) => {
      const mark = markOf(tenant.name);
      const stroke = colourOf(mark);
      return [
        { label: tenant.name, stroke, width: 2, dash: dashes[mark.dash] },
        { label: `${tenant.name} may`, stroke, width: 1, dash: [1, 4] },
      ];
    }), (plot) => drawLetters(plot, tenants));
  }

  showOf(tenants, record, index) {
    const none = new Array(record.times.length).fill(null);
    this.show([record.times, ...tenants.flatMap((tenant) => {
      const row = record.rows.get(`${tenant.id}/${index}`);
      return [row?.[this.field] ?? none, row?.[this.bound] ?? none];
    })]);
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
      new TenantsPlot("chart-compute", "got", "limit", 100),
      new TenantsPlot("chart-memory", "used", "quota", 1),
    ];
    this.legend = new List(document.getElementById("legend"), (tenant) => tenant.id, (tenant) => new Legend(tenant));
    this.table = new FoldedList(document.getElementById("chart-table").tBodies[0], (item) => item.tenant.id,
      (item) => new TableRow(item));
    this.select.onchange = () => this.again();
  }

  choose(state, index) {
    const here = state.tenants
      .map((tenant) => ({ tenant, device: tenant.devices.find((device) => device.index === index) }))
      .filter(({ tenant, device }) => device && this.tenants.matches(tenant));
    const weight = ({ device }) => device.got_60s_pct * 10 + (100 * device.memory_used_bytes) / (device.memory_quota_bytes || 1);
    // A shown tenant is replaced only if another uses clearly more: lines that come and go can't be read.
    const stays = ({ tenant }) => (this.shown?.includes(tenant.id) ? 1.3 : 1);
    here.sort((a, b) => weight(b) * stays(b) - weight(a) * stays(a));
    return here.slice(0, SHOWN_MAX).sort((a, b) => (a.tenant.name < b.tenant.name ? -1 : 1));
  }

  again() {
    if (this.last) this.show(...this.last);
  }

  // Call when the theme's colours have changed.
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
      this.plots.forEach((plot) => plot.setTenants(tenants));
      this.shown = ids;
    }
    this.plots.forEach((plot) => plot.showOf(tenants, record, index));
    this.legend.show(tenants);
    this.table.show(() => chosen.map(({ tenant, device }) => ({ tenant, device, row: record.rows.get(`${tenant.id}/${index}`) })));
  }
}
