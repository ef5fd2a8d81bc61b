// The table of nodes, a page at a time, with how much of each node's compute and memory is promised.
import { Bar } from "./bar.js";
import { List, bytes, make, percent, setAttribute, setClass, setHidden, setText } from "./format.js";

const ROWS = 50;
const FROM_MAX = 20000; // VIEW_FROM_MAX in view.h; beyond it, users should filter
const states = {
  free: ["○", ""], used: ["●", "good"], full: ["■", ""], cordoned: ["‖", "warn"], unhealthy: ["⚠", "bad"], aside: ["⚠", "bad"],
};
const columns = [
  { title: "Node", order: "name" }, { title: "State" }, { title: "GPUs" }, { title: "Compute promised", order: "cores" },
  { title: "Memory promised", order: "memory" }, { title: "Containers", order: "shares" },
];

// The buttons of a table that show its previous and its next page.
export class Pager {
  constructor(name, to) {
    this.element = document.getElementById(`${name}-pager`);
    this.shown = document.getElementById(`${name}-shown`);
    this.none = document.getElementById(`${name}-none`);
    this.buttons = this.element.querySelectorAll("button");
    this.buttons[0].onclick = () => to(Math.max(0, this.from - ROWS));
    this.buttons[1].onclick = () => to(this.from + ROWS);
  }

  // `none` is the text to show if there are no rows.
  show({ seen, from, keys }, none) {
    this.from = from;
    setText(this.shown, seen > ROWS || from ? `${from + 1} to ${from + keys.length} of ${seen}` : String(seen));
    setHidden(this.element, seen <= ROWS && !from);
    this.buttons[0].disabled = from === 0;
    this.buttons[1].disabled = from + keys.length >= seen || from + ROWS > FROM_MAX;
    setText(this.none, none);
    setHidden(this.none, keys.length > 0);
  }
}

class Row {
  constructor({ node }, look) {
    this.open = make("button", { type: "button", className: "link" }, node.node);
    this.open.onclick = () => look({ open: node.node });
    this.state = make("td");
    this.cards = make("td");
    this.compute = new Bar();
    this.memory = new Bar();
    this.shares = make("td", { className: "number" });
    this.element = make("tr", {}, make("th", { scope: "row" }, this.open), this.state, this.cards,
      this.compute.cell(), this.memory.cell(), this.shares);
  }

  show({ node, isOpen }) {
    const [sign, kind] = states[node.state];
    const cores = node.cores_pct ? (100 * node.promised_cores_pct) / node.cores_pct : 0;
    const sick = node.cards_unhealthy ? `, ${node.cards_unhealthy} of ${node.cards} GPUs` : "";
    setText(this.state, `${sign} ${node.state === "aside" ? `set aside: ${node.why}` : node.state}${sick}`);
    setClass(this.state, kind);
    setText(this.cards, node.cards ? `${node.cards} × ${node.type}` : "not known");
    this.compute.show(cores / 100, null, percent(cores));
    this.memory.show(node.promised_bytes / node.memory_bytes, null, `${bytes(node.promised_bytes)} of ${bytes(node.memory_bytes)}`);
    setText(this.shares, String(node.shares));
    setClass(this.element, isOpen ? "chosen" : "");
    setAttribute(this.open, "aria-pressed", String(isOpen));
  }
}

export class Nodes {
  constructor({ look, view }) {
    const table = document.getElementById("node-table");
    this.view = view;
    this.rows = new Map();
    this.list = new List(table.tBodies[0], (item) => item.node.node, (item) => new Row(item, look));
    this.pager = new Pager("nodes", (from) => look({ nodes_from: from || "" }));
    this.heads = columns.map(({ title, order }) => {
      const head = make("th", { scope: "col", className: title === "Containers" ? "number" : "" }, order ? make("button", { type: "button" }, title) : title);
      if (order) head.firstChild.onclick = () => look({ order: order === "name" ? "" : order, nodes_from: "" });
      return head;
    });
    table.tHead.rows[0].append(...this.heads);
  }

  clear() {
    this.rows.clear();
  }

  // `all` is the number of nodes without the filters.
  take({ seen, from, keys, rows }, all) {
    for (const row of rows) this.rows.set(row.node, row);
    const wanted = new Set(keys);
    for (const key of this.rows.keys()) if (!wanted.has(key)) this.rows.delete(key);
    const order = this.view.get("order") ?? "name";
    this.heads.forEach((head, i) => {
      if (columns[i].order)
        setAttribute(head, "aria-sort", columns[i].order !== order ? "none" : order === "name" ? "ascending" : "descending");
    });
    this.list.show(keys.map((key) => ({ node: this.rows.get(key), isOpen: key === this.view.get("open") })));
    this.pager.show({ seen, from, keys }, all ? "No node matches the filters." : "No node reports GPUs. Is allotd running there?");
  }
}
