// Each GPU: how busy, how full, against what was promised; and what is wrong with it.
import { Bar, List, bytes, count, make, percent, setClass, setText } from "./format.js";

class Card {
  constructor(device) {
    this.compute = new Bar();
    this.memory = new Bar();
    this.computeText = make("span", { className: "figures" });
    this.memoryText = make("span", { className: "figures" });
    this.note = make("p", { className: "note" });
    this.element = make("li", {},
      make("h3", {}, `GPU ${device.index} `, make("span", {}, device.name)),
      make("div", { className: "row" }, make("span", {}, "Compute"), this.compute.element, this.computeText),
      make("div", { className: "row" }, make("span", {}, "Memory"), this.memory.element, this.memoryText),
      this.note);
  }

  show({ device, tenants }) {
    const used = device.memory_used_bytes;
    this.compute.show(device.busy_pct / 100, device.promised_cores_pct / 100);
    this.memory.show(used / device.memory_bytes, device.promised_bytes / device.memory_bytes);
    setText(this.computeText, `${percent(device.busy_pct)} busy, ${percent(device.promised_cores_pct)} promised`);
    setText(this.memoryText,
      `${bytes(used)} of ${bytes(device.memory_bytes)}, ${bytes(device.promised_bytes + device.granted_bytes)} promised`);
    const notes = [count(tenants, "tenant")];
    if (device.foreign_bytes > 0) notes.push(`${bytes(device.foreign_bytes)} held by others`);
    if (device.cordoned) notes.push("cordoned: takes no new tenants");
    if (device.health !== "healthy") notes.push(`not well: ${device.health_reason}`);
    setText(this.note, notes.join(" · "));
    setClass(this.note, `note ${device.health !== "healthy" ? "bad" : device.cordoned ? "warn" : ""}`);
  }
}

export class Cards {
  constructor() {
    this.list = new List(document.getElementById("cards"), (item) => item.device.uuid,
      (item) => new Card(item.device));
  }

  show(state) {
    const tenants = new Map();
    for (const tenant of state.tenants)
      for (const device of tenant.devices) tenants.set(device.index, (tenants.get(device.index) ?? 0) + 1);
    this.list.show(state.devices.map((device) => ({ device, tenants: tenants.get(device.index) ?? 0 })));
  }
}
