// The GPUs, the links between them and the tenants on each: a picture, and a table of the links.
import { make, markOf, percent, setAttribute, setText } from "./format.js";
import { watchView } from "./view.js";

const NODE = { width: 170, height: 74 };
const CHIPS = 5;

function draw(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Places one or two GPUs side by side, and more around an ellipse, so that no link runs through another GPU.
function places(count) {
  const isRow = count < 3;
  const size = isRow ? { width: count * 260, height: 120 } : { width: 760, height: count < 7 ? 380 : 480 };
  const at = Array.from({ length: count }, (_, i) => {
    const angle = (2 * Math.PI * i) / count - Math.PI / 2;
    return isRow ? { x: 130 + i * 260, y: 60 } : {
      x: size.width / 2 + (size.width / 2 - NODE.width / 2 - 4) * Math.cos(angle),
      y: size.height / 2 + (size.height / 2 - NODE.height / 2 - 4) * Math.sin(angle),
    };
  });
  return { size, at };
}

class Node {
  constructor(device, { x, y }) {
    const left = x - NODE.width / 2;
    const top = y - NODE.height / 2;
    this.left = left;
    this.busy = draw("rect", { class: "busy", x: left + 8, y: top + 26, width: 0, height: 8 });
    this.text = draw("text", { x: left + NODE.width - 8, y: top + 18, "text-anchor": "end" });
    this.chips = draw("g", { transform: `translate(${left + 8} ${top + 42})` });
    const numa = device.numa === null ? "" : ` · NUMA ${device.numa}`;
    const title = draw("text", { x: left + 8, y: top + 18 }, `GPU ${device.index}`);
    if (numa) title.append(draw("tspan", { class: "soft" }, numa));
    this.element = draw("g", { class: "node" },
      draw("rect", { class: "box", x: left, y: top, width: NODE.width, height: NODE.height, rx: 6 }), title, this.text,
      draw("rect", { class: "track", x: left + 8, y: top + 26, width: NODE.width - 16, height: 8 }), this.busy, this.chips);
  }

  showUse(device) {
    setAttribute(this.busy, "width", Math.round((NODE.width - 16) * Math.min(1, device.busy_pct / 100)).toString());
    setText(this.text, percent(device.busy_pct));
  }

  show(device, names) {
    setAttribute(this.element, "class", device.health === "healthy" ? "node" : "node sick");
    if (this.shown === names) return;
    this.shown = names;
    const shown = names.slice(0, names.length > CHIPS ? CHIPS - 1 : CHIPS);
    this.chips.replaceChildren(...shown.map((name, i) => {
      const mark = markOf(name);
      return draw("g", { class: `chip m${mark.colour}`, transform: `translate(${i * 27} 0)` },
        draw("rect", { width: 24, height: 20, rx: 3 }),
        draw("text", { x: 12, y: 14, "text-anchor": "middle" }, mark.letter), draw("title", {}, name));
    }));
    if (names.length > shown.length)
      this.chips.append(draw("text", { class: "soft", x: shown.length * 27 + 2, y: 14 }, `+${names.length - shown.length}`));
  }
}

function lineOf(link, at) {
  const [from, to] = link.devices.map((index) => at[index]);
  return draw("line", {
    class: link.nvlinks ? "nvlink" : "pcie", x1: from.x, y1: from.y, x2: to.x, y2: to.y,
    "stroke-width": link.nvlinks ? Math.min(6, 1 + link.nvlinks / 3) : 1,
  });
}

export class Topology {
  constructor() {
    this.element = document.getElementById("topology");
    this.table = document.getElementById("link-table").tBodies[0];
    watchView(this.element, (isSeen) => {
      this.isSeen = isSeen;
      this.showUse();
    });
  }

  load(topology) {
    const { size, at } = places(topology.devices.length);
    this.nodes = topology.devices.map((device) => new Node(device, at[device.index]));
    this.title = draw("title", { id: "topology-text" });
    this.names = null;
    this.element.replaceChildren(draw("svg",
      { viewBox: `0 0 ${size.width} ${size.height}`, role: "img", "aria-labelledby": "topology-text" }, this.title,
      draw("g", {}, ...topology.links.map((link) => lineOf(link, at))), ...this.nodes.map((node) => node.element)));
    this.table.replaceChildren(...topology.links.map((link) => make("tr", {},
      make("th", { scope: "row" }, link.devices.join(" and ")), make("td", {}, link.nvlinks ? String(link.nvlinks) : "none"),
      make("td", {}, link.pcie ?? "not known"))));
  }

  // If `state.isOther` is false, each tenant still has the same GPUs.
  show(state) {
    if (!this.nodes || this.nodes.length !== state.devices.length) return;
    this.devices = state.devices;
    if (state.isOther !== false || !this.names) this.place(state);
    state.devices.forEach((device, i) => this.nodes[i].show(device, this.names[i]));
    this.showUse();
  }

  // Draws how busy the GPUs are, but only while the picture is in view.
  showUse() {
    if (this.isSeen) this.devices?.forEach((device, i) => this.nodes[i].showUse(device));
  }

  place(state) {
    const namesOf = new Map(state.devices.map((device) => [device.index, new Set()]));
    for (const tenant of state.tenants)
      for (const { index } of tenant.devices) namesOf.get(index)?.add(tenant.name);
    this.names = state.devices.map((device) => [...namesOf.get(device.index)]);
    setText(this.title, state.devices.map(({ index }, i) =>
      `GPU ${index}: ${this.names[i].slice(0, 20).join(", ") || "no tenant"}`).join(". "));
  }
}
