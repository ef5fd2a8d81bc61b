// The dialog that asks for a tenant's new terms.
import { GIB, make } from "./format.js";

function field(label, value, most, step) {
  const input = make("input", { type: "number", min: 0, max: most, step, value });
  return { input, element: make("label", {}, `${label} `, input), was: String(value) };
}

export class SetDialog {
  constructor(change) {
    this.change = change;
    this.dialog = document.getElementById("set-dialog");
    this.error = document.getElementById("set-error");
    this.devices = document.getElementById("set-devices");
    this.priority = document.getElementById("set-priority");
    document.getElementById("set-cancel").onclick = () => this.dialog.close();
    this.dialog.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
  }

  open(tenant) {
    this.tenant = tenant;
    this.error.textContent = "";
    document.getElementById("set-title").textContent = `Change ${tenant.name}`;
    this.fields = tenant.devices.map((device) => ({
      index: device.index,
      memory: field("Memory, GiB", Number((device.memory_quota_bytes / GIB).toFixed(3)), null, "any"),
      cores: field("Guaranteed compute, %", device.cores_pct, 100, "any"),
      limit: field("Compute at most, %", device.cores_limit_pct, 100, "any"),
    }));
    this.devices.replaceChildren(...this.fields.map((fields) => make("fieldset", {},
      make("legend", {}, `GPU ${fields.index}`), fields.memory.element, fields.cores.element, fields.limit.element)));
    this.priority.value = tenant.priority;
    this.dialog.showModal();
  }

  // A field that was not touched is left out: memory without a fixed quota stays without one.
  request() {
    const devices = this.fields.map(({ index, memory, cores, limit }) => {
      const device = { index };
      if (memory.input.value !== memory.was) device.memory_bytes = Math.round(Number(memory.input.value) * GIB);
      if (cores.input.value !== cores.was || limit.input.value !== limit.was) {
        device.cores_pct = Number(cores.input.value);
        device.cores_limit_pct = Number(limit.input.value);
      }
      return device;
    }).filter((device) => Object.keys(device).length > 1);
    const request = { name: this.tenant.id };
    if (devices.length) request.devices = devices;
    if (Number(this.priority.value) !== this.tenant.priority) request.priority = Number(this.priority.value);
    return request;
  }

  async submit() {
    const request = this.request();
    if (Object.keys(request).length > 1) {
      try {
        await this.change("set", request);
      } catch (error) {
        this.error.textContent = error.message;
        return;
      }
    }
    this.dialog.close();
  }
}
