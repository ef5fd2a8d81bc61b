// The table of tenants: asked against got, sorted and filtered, and what may be done about each.
import { Bar, List, badge, bytes, make, percent, seconds, setClass, setText } from "./format.js";

const states = {
  running: ["●", "good"], waiting: ["◐", ""], idle: ["○", ""], starting: ["◌", ""],
  queued: ["◷", "warn"], swapped: ["⇄", "warn"], paused: ["‖", "warn"],
};

const sum = (tenant, field) => tenant.devices.reduce((all, device) => all + device[field], 0);

const columns = [
  { title: "Tenant", of: (tenant) => tenant.name },
  { title: "State", of: (tenant) => tenant.state },
  { title: "GPU", of: (tenant) => tenant.devices[0].index },
  { title: "Compute", of: (tenant) => sum(tenant, "got_1s_pct"), falls: true },
  { title: "Memory", of: (tenant) => sum(tenant, "memory_used_bytes"), falls: true },
  { title: "Held at gates", of: (tenant) => sum(tenant, "waited_s"), falls: true },
  { title: "Priority", of: (tenant) => tenant.priority, falls: true },
];

class Row {
  constructor(tenant, act) {
    this.state = make("td");
    this.cards = make("td");
    this.compute = new Bar();
    this.computeText = make("span");
    this.memory = new Bar();
    this.memoryText = make("span");
    this.waited = make("td", { className: "number" });
    this.priority = make("td", { className: "number" });
    this.pause = make("button", { type: "button" });
    this.set = make("button", { type: "button", "aria-label": `Change ${tenant.name}` }, "Change");
    this.pause.onclick = () => act.pause(this.tenant);
    this.set.onclick = () => act.set(this.tenant);
    this.actions = make("td", {}, this.pause, " ", this.set);
    this.element = make("tr", {},
      make("th", { scope: "row" }, badge(tenant.name), tenant.name), this.state, this.cards,
      make("td", {}, make("span", { className: "pair" }, this.compute.element, this.computeText)),
      make("td", {}, make("span", { className: "pair" }, this.memory.element, this.memoryText)),
      this.waited, this.priority, this.actions);
  }

  show({ tenant, mayChange }) {
    const [sign, kind] = states[tenant.state] ?? ["", ""];
    const got = sum(tenant, "got_1s_pct");
    const limit = sum(tenant, "cores_limit_now_pct");
    const asked = sum(tenant, "cores_pct");
    const used = sum(tenant, "memory_used_bytes");
    const quota = sum(tenant, "memory_quota_bytes");
    const isPaused = tenant.state === "paused";
    this.tenant = tenant;
    setText(this.state, `${sign} ${tenant.state}${tenant.violations ? ` ⚠ ${tenant.violations} got round` : ""}`);
    setClass(this.state, tenant.violations ? "bad" : kind);
    setText(this.cards, tenant.devices.map((device) => device.index).join(", "));
    this.compute.show(got / (100 * tenant.devices.length), asked ? asked / (100 * tenant.devices.length) : null);
    setText(this.computeText, `${percent(got)} of ${asked && asked !== limit ? `${asked} to ` : ""}${percent(limit)}`);
    this.memory.show(used / quota, null);
    const away = tenant.swap?.swapped_bytes;
    setText(this.memoryText, `${bytes(used)} of ${bytes(quota)}${away ? `, ${bytes(away)} off the card` : ""}`);
    setText(this.waited, seconds(sum(tenant, "waited_s")));
    setText(this.priority, String(tenant.priority));
    this.actions.hidden = !mayChange;
    setText(this.pause, isPaused ? "Resume" : "Pause");
    const label = `${isPaused ? "Resume" : "Pause"} ${tenant.name}`;
    if (this.pause.getAttribute("aria-label") !== label) this.pause.setAttribute("aria-label", label);
  }
}

export class Tenants {
  constructor(act) {
    const table = document.getElementById("tenant-table");
    this.sorted = { column: columns[0], falls: false };
    this.filter = document.getElementById("filter");
    this.shown = document.getElementById("shown");
    this.filter.addEventListener("input", () => this.again());
    this.list = new List(table.tBodies[0], (item) => item.tenant.id, (item) => new Row(item.tenant, act));
    this.heads = columns.map((column) => {
      const head = make("th", { scope: "col" }, make("button", { type: "button" }, column.title));
      head.firstChild.onclick = () => this.sort(column);
      return head;
    });
    this.actionHead = make("th", { scope: "col" }, "Change");
    table.tHead.rows[0].append(...this.heads, this.actionHead);
    this.tellSort();
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
    if (this.last) this.show(this.last.state, this.last.mayChange);
  }

  show(state, mayChange) {
    const { column, falls } = this.sorted;
    const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0) * (falls ? -1 : 1);
    const tenants = state.tenants.filter((tenant) => this.matches(tenant));
    this.last = { state, mayChange };
    tenants.sort((a, b) => order(column.of(a), column.of(b)) || order(a.name, b.name));
    this.actionHead.hidden = !mayChange;
    this.list.show(tenants.map((tenant) => ({ tenant, mayChange })));
    setText(this.shown, tenants.length === state.tenants.length ? "" : `${tenants.length} of ${state.tenants.length}`);
  }
}
