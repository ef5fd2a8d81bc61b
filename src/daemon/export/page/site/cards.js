// A card for each GPU: how busy and how full it is, how much of it is promised, and whether it is unhealthy.
import { Card } from "./bar.js";
import { Board } from "./board.js";
import { List, bytes, count, make, percent } from "./format.js";
import { CardMeter } from "./meter.js";

class DeviceCard extends Card {
  constructor(device, at) {
    super(make("li"), make("h3", {}, `GPU ${device.index} `, make("span", {}, device.name)), new CardMeter(at));
  }

  show({ device, tenants }) {
    const used = device.memory_used_bytes;
    const isWell = device.health === "healthy";
    const notes = [count(tenants, "tenant")];
    if (device.foreign_bytes > 0) notes.push(`${bytes(device.foreign_bytes)} held by no tenant`);
    if (device.cordoned) notes.push("cordoned: takes no new tenants");
    if (!isWell) notes.push(`unhealthy: ${device.health_reason}`);
    super.show({
      compute: [device.busy_pct / 100, device.promised_cores_pct / 100,
        `${percent(device.busy_pct)} busy, ${percent(device.promised_cores_pct)} promised`],
      memory: [used / device.memory_bytes, device.promised_bytes / device.memory_bytes,
        `${bytes(used)} of ${bytes(device.memory_bytes)}, ${bytes(device.promised_bytes + device.granted_bytes)} promised`],
      notes, kind: !isWell ? "bad" : device.cordoned ? "warn" : "",
    });
  }
}

export class Cards {
  constructor() {
    this.list = new List(document.getElementById("cards"), (item) => item.device.uuid,
      (item) => new DeviceCard(item.device, this));
    this.board = new Board(this.list.parent, () => [...this.list.parts.values()].map((card) => card.compute));
  }

  redraw() {
    this.board.redraw();
  }

  show(state) {
    if (state.isOther) {
      this.tenants = new Map();
      for (const tenant of state.tenants)
        for (const { index } of tenant.devices) this.tenants.set(index, (this.tenants.get(index) ?? 0) + 1);
    }
    const { keys } = this.list;
    this.list.show(state.devices.map((device) => ({ device, tenants: this.tenants.get(device.index) ?? 0 })));
    if (keys.join() !== this.list.keys.join()) this.board.later(true);
  }
}
