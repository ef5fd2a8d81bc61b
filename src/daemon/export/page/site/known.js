// All tenants as the events so far describe them, and what the last event changed.
import { markOf } from "./format.js";

const placesOf = (tenant) => tenant.devices.map((device) => device.index).join();

export class Known {
  constructor() {
    this.clear();
  }

  clear() {
    this.tenants = [];
    this.at = new Map(); // tenant id -> index in `tenants`
  }

  drop(gone) {
    const ids = new Set(gone);
    const left = this.tenants.filter((tenant) => !ids.has(tenant.id));
    this.clear();
    for (const tenant of left) this.put(tenant);
  }

  put(tenant) {
    const at = this.at.get(tenant.id) ?? this.tenants.length;
    const was = this.tenants[at];
    this.at.set(tenant.id, at);
    this.tenants[at] = tenant;
    return was;
  }

  // An event has either all tenants, or only those that changed since the last event and the ids of removed ones (`gone`).
  // Returns the event with all tenants added. `changed` has [before, now] of each changed tenant. `isOther` is true if a tenant
  // was added, was removed, or has other GPUs.
  take(event) {
    let isOther = !event.gone || event.gone.length > 0;
    if (!event.gone) this.clear();
    else if (event.gone.length) this.drop(event.gone);
    const changed = [];
    for (const tenant of event.tenants) {
      const was = this.put(tenant);
      // Assign the tenant's letter now, so that letters follow the order in which tenants arrive.
      markOf(tenant.name);
      if (was) changed.push([was, tenant]);
      isOther ||= !was || placesOf(was) !== placesOf(tenant);
    }
    return { ...event, tenants: this.tenants, changed, isOther };
  }
}
