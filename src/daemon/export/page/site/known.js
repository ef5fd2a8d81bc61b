// What is known of the tenants by the events so far, and which of it is news.
import { markOf } from "./format.js";

const placesOf = (tenant) => tenant.devices.map((device) => device.index).join();

export class Known {
  constructor() {
    this.clear();
  }

  clear() {
    this.tenants = [];
    this.at = new Map(); // by id: where in `tenants`
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

  // An event has all tenants; or only those that changed since the last event, and the ids of removed ones (`gone`). Returns the
  // event with all tenants; `changed`: [before, now] of each changed tenant; `isOther`: a tenant is new, was removed, or moved.
  take(event) {
    let isOther = !event.gone || event.gone.length > 0;
    if (!event.gone) this.clear();
    else if (event.gone.length) this.drop(event.gone);
    const changed = [];
    for (const tenant of event.tenants) {
      const was = this.put(tenant);
      // Letters by the order in which tenants came, wherever they are shown first.
      markOf(tenant.name);
      if (was) changed.push([was, tenant]);
      isOther ||= !was || placesOf(was) !== placesOf(tenant);
    }
    return { ...event, tenants: this.tenants, changed, isOther };
  }
}
