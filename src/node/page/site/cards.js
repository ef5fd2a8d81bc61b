// Each GPU: how busy, how full, against what was promised; and what is wrong with it.
import { Card } from "./bar.js";
import { List, bytes, count, make, percent } from "./format.js";

class DeviceCard extends Card {
  constructor(device) {
    super(make("li"), make("h3", {}, `GPU ${device.index} `, make("span", {}, device.name)));
  }

  show({ device, tenants }) {
    const used = device.memory_used_bytes;
    const isWell = device.health === "healthy";
    const notes = [count(tenants, "tenant")];
    if (device.foreign_bytes > 0) notes.push(`${bytes(device.foreign_bytes)} held by others`);
    if (device.cordoned) notes.push("cordoned: takes no new tenants");
    if (!isWell) notes.push(`not well: ${device.health_reason}`);
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
      (item) => new DeviceCard(item.device));
  }

  show(state) {
    const tenants = new Map();
    for (const tenant of state.tenants)
      for (const device of tenant.devices) tenants.set(device.index, (tenants.get(device.index) ?? 0) + 1);
    this.list.show(state.devices.map((device) => ({ device, tenants: tenants.get(device.index) ?? 0 })));
  }
}
