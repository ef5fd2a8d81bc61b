// The table of tenants: what each asked for and gets. It can be sorted and filtered, and has buttons to change a tenant.
import { Bar } from "./bar.js";
import { Board } from "./board.js";
import { List, badge, bytes, make, milliseconds, percent, rate, seconds, setAttribute, setClass, setHidden, setText } from "./format.js";
import { Figures, RowMeter, Word } from "./meter.js";

const states = {
  running: ["●", "good"], waiting: ["◐", ""], idle: ["○", ""], starting: ["◌", ""],
  queued: ["◷", "warn"], leaving: ["⇤", "warn"], swapped: ["⇄", "warn"], returning: ["⇥", "warn"],
  paused: ["‖", "warn"], ending: ["◍", "warn"],
};

// The same texts as in the manual page allot-ps(1).
const MEANINGS = {
  starting: "No process of the tenant uses a GPU yet.",
  running: "It has work on a GPU.",
  waiting: "It has work to launch and waits for its turn on the GPU.",
  idle: "It has processes that use a GPU, but no work.",
  queued: "It waits for GPU memory.",
  leaving: "Its memory is being moved to host memory.",
  swapped: "Its memory is in host memory.",
  returning: "Its memory is being moved back to the GPU.",
  paused: "It starts no more work until it is resumed.",
  ending: "It was removed, but some of its processes still live.",
};

const sum = (tenant, field) => tenant.devices.reduce((all, device) => all + device[field], 0);

// Returns the steps of the GPU on which a step takes longest, or null if the tenant had no steps lately.
const slowest = (tenant) => tenant.devices.map((device) => device.steps)
  .reduce((most, steps) => steps && (!most || steps.p99_ms > most.p99_ms) ? steps : most, null);

const columns = [
  { title: "Tenant", of: (tenant) => tenant.name },
  { title: "State", of: (tenant) => tenant.state },
  { title: "GPU", of: (tenant) => tenant.devices[0].index },
  { title: "Compute", of: (tenant) => sum(tenant, "got_1s_pct"), falls: true },
  { title: "Memory", of: (tenant) => sum(tenant, "memory_used_bytes"), falls: true },
  { title: "Step p50, p99", of: (tenant) => slowest(tenant)?.p99_ms ?? -1, falls: true },
  { title: "Held at gates", of: (tenant) => sum(tenant, "waited_s"), falls: true },
  { title: "Priority", of: (tenant) => tenant.priority, falls: true },
];

// The style sheet does not lay the rows out as a table. The roles tell screen readers that it is one, in every browser.
function setRole(row) {
  row.setAttribute("role", "row");
  for (const cell of row.cells) cell.setAttribute("role", cell.tagName === "TD" ? "cell" : `${cell.scope === "col" ? "column" : "row"}header`);
}

class Row {
  constructor(tenant, act) {
    this.cards = make("td");
    this.drawings = [new Word(this), new RowMeter(this), new Figures(this), new Figures(this)];
    [this.state, this.compute, this.steps, this.waited] = this.drawings;
    this.memory = new Bar();
    this.priority = make("td", { className: "number" });
    this.pause = make("button", { type: "button" });
    this.set = make("button", { type: "button", "aria-label": `Change ${tenant.name}` }, "Change");
    this.pause.onclick = () => act.pause(this.tenant);
    this.set.onclick = () => act.set(this.tenant);
    this.actions = make("td", {}, this.pause, " ", this.set);
    this.element = make("tr", {},
      make("th", { scope: "row" }, badge(tenant.name), tenant.name), make("td", {}, this.state.element), this.cards,
      make("td", {}, this.compute.element), this.memory.cell(),
      make("td", { className: "number" }, this.steps.element), make("td", { className: "number" }, this.waited.element), this.priority, this.actions);
    setRole(this.element);
  }

  show({ tenant, mayChange }) {
    if (this.tenant === tenant && this.mayChange === mayChange) return;
    const [sign, kind] = states[tenant.state] ?? ["", ""];
    const got = sum(tenant, "got_1s_pct");
    const limit = sum(tenant, "cores_limit_now_pct");
    const asked = sum(tenant, "cores_pct");
    const used = sum(tenant, "memory_used_bytes");
    const quota = sum(tenant, "memory_quota_bytes");
    const isPaused = tenant.state === "paused";
    Object.assign(this, { tenant, mayChange });
    this.state.show(`${sign} ${tenant.state}${tenant.violations ? ` ⚠ ${tenant.violations} bypass` : ""}`,
      tenant.violations ? "bad" : kind);
    setText(this.cards, tenant.devices.map((device) => device.index).join(", "));
    this.compute.show(got / (100 * tenant.devices.length), asked ? asked / (100 * tenant.devices.length) : null,
      `${percent(got)} of ${asked && asked !== limit ? `${asked} to ` : ""}${percent(limit)}`);
    const away = tenant.swap?.swapped_bytes;
    this.memory.show(used / quota, null, `${bytes(used)} of ${bytes(quota)}${away ? `, ${bytes(away)} off the GPU` : ""}`);
    const steps = slowest(tenant);
    this.steps.show(steps ? `${milliseconds(steps.p50_ms)}, ${milliseconds(steps.p99_ms)}, ${rate(steps.per_second)}` : "–");
    this.waited.show(seconds(sum(tenant, "waited_s")));
    setText(this.priority, String(tenant.priority));
    setHidden(this.actions, !mayChange);
    setText(this.pause, isPaused ? "Resume" : "Pause");
    setAttribute(this.pause, "aria-label", `${isPaused ? "Resume" : "Pause"} ${tenant.name}`);
  }
}

const GROUP = 10;

// GROUP rows of the table. A group out of view is not drawn, so only the rows in view cost time.
class Group {
  constructor(rowOf) {
    this.element = make("tbody", { role: "rowgroup" });
    this.list = new List(this.element, (item) => item.tenant.id, rowOf);
    this.board = new Board(this.element, () => [...this.list.parts.values()].flatMap((row) => row.drawings));
  }

  show({ items }) {
    const { keys } = this.list;
    this.list.show(items);
    if (keys.join() === this.list.keys.join()) return;
    for (const row of this.list.parts.values()) row.board = this.board;
    this.board.later(true);
  }
}

export class Tenants {
  constructor(act) {
    this.table = document.getElementById("tenant-table");
    this.sorted = { column: columns[0], falls: false };
    this.filter = document.getElementById("filter");
    this.shown = document.getElementById("shown");
    this.none = document.getElementById("tenants-none");
    document.getElementById("states").append(...Object.entries(MEANINGS).flatMap(([state, meaning]) =>
      [make("dt", {}, `${states[state][0]} ${state}`), make("dd", {}, meaning)]));
    this.filter.addEventListener("input", () => this.again());
    this.rows = new Map(); // tenant id -> row; a row that moves to another group is kept
    this.groups = new List(this.table, (group) => group.number, () => new Group(({ tenant }) => this.rowOf(tenant, act)));
    this.heads = columns.map((column) => {
      const head = make("th", { scope: "col" }, make("button", { type: "button" }, column.title));
      head.firstChild.onclick = () => this.sort(column);
      return head;
    });
    this.actionHead = make("th", { scope: "col" }, "Change");
    this.table.tHead.rows[0].append(...this.heads, this.actionHead);
    setRole(this.table.tHead.rows[0]);
    this.tellSort();
  }

  rowOf(tenant, act) {
    if (!this.rows.has(tenant.id)) this.rows.set(tenant.id, new Row(tenant, act));
    return this.rows.get(tenant.id);
  }

  sort(column) {
    const falls = this.sorted.column === column ? !this.sorted.falls : Boolean(column.falls);
    this.sorted = { column, falls };
    this.tellSort();
    this.again();
  }

  tellSort() {
    this.heads.forEach((head, i) => head.setAttribute("aria-sort", columns[i] !== this.sorted.column ? "none"
      : this.sorted.falls ? "descending" : "ascending"));
  }

  matches(tenant) {
    const text = this.filter.value.trim().toLowerCase();
    return !text || tenant.name.toLowerCase().includes(text) || tenant.state.includes(text);
  }

  again() {
    if (this.last) this.arrange(this.last.state, this.last.mayChange);
  }

  forget(tenants) {
    const there = new Set(tenants.map((tenant) => tenant.id));
    for (const id of this.rows.keys()) if (!there.has(id)) this.rows.delete(id);
  }

  redraw() {
    for (const { board } of this.groups.parts.values()) board.redraw();
  }

  // Returns whether the rows stay the same, in the same order.
  isSettled(state, mayChange) {
    const { of } = this.sorted.column;
    return this.last?.mayChange === mayChange && !state.isOther &&
      state.changed.every(([was, is]) => of(was) === of(is) && this.matches(was) === this.matches(is));
  }

  show(state, mayChange) {
    if (this.isSettled(state, mayChange))
      for (const [, tenant] of state.changed) this.rows.get(tenant.id)?.show({ tenant, mayChange });
    else
      this.arrange(state, mayChange);
    this.last = { state, mayChange };
  }

  arrange(state, mayChange) {
    const { column, falls } = this.sorted;
    const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0) * (falls ? -1 : 1);
    const tenants = state.tenants.filter((tenant) => this.matches(tenant));
    tenants.sort((a, b) => order(column.of(a), column.of(b)) || order(a.name, b.name));
    setHidden(this.actionHead, !mayChange);
    const groups = [];
    tenants.forEach((tenant, i) => {
      if (i % GROUP === 0) groups.push({ number: i / GROUP, items: [] });
      groups.at(-1).items.push({ tenant, mayChange });
    });
    this.groups.show(groups);
    if (this.table.classList.toggle("changeable", mayChange) !== this.isChangeable) {
      this.isChangeable = mayChange;
      this.redraw();
    }
    if (this.rows.size > state.tenants.length) this.forget(state.tenants);
    setText(this.none, state.tenants.length ? "No tenant matches the filter."
      : "No tenant uses a GPU of this machine. allot run -- COMMAND starts one.");
    setHidden(this.none, tenants.length > 0);
    setText(this.shown, tenants.length === state.tenants.length ? "" : `${tenants.length} of ${state.tenants.length}`);
  }
}
