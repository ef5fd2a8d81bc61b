// The list of tenants that wait for memory: in which order, for how much, and which tenants hold it.
import { List, badge, bytes, count, make, seconds, setHidden, setText } from "./format.js";

class Waiter {
  constructor({ tenant }) {
    this.text = make("span");
    this.element = make("li", {}, badge(tenant.name), make("strong", {}, tenant.name), " ", this.text);
  }

  show({ tenant, why }) {
    const wait = tenant.memory_wait;
    setText(this.text, `number ${wait.place} in line, for ${seconds(wait.waited_s)}` +
      `${wait.passed ? `, overtaken ${count(wait.passed, "time")}` : ""}: ${why}`);
  }
}

function holders(state, index, except) {
  return state.tenants
    .filter((tenant) => tenant.id !== except)
    .flatMap((tenant) => tenant.devices
      .filter((device) => device.index === index)
      .map((device) => ({
        name: tenant.name,
        bytes: tenant.on_full === "wait" ? device.memory_granted_bytes
          : device.memory_given ? device.memory_quota_bytes : device.memory_used_bytes,
      })))
    .filter((holder) => holder.bytes > 0)
    .sort((a, b) => b.bytes - a.bytes);
}

function whyOf(state, tenant) {
  return tenant.devices.map((device) => {
    const card = state.devices.find((other) => other.index === device.index);
    const all = holders(state, device.index, tenant.id);
    const named = all.slice(0, 3).map((holder) => `${holder.name} ${bytes(holder.bytes)}`);
    if (all.length > 3) named.push(`${all.length - 3} more`);
    return `needs ${bytes(device.memory_reserve_bytes)} of GPU ${device.index}, of which ` +
      `${bytes(card.grantable_bytes)} can be granted` + (named.length ? `; held by ${named.join(", ")}` : "");
  }).join("; ");
}

export class Waiting {
  constructor() {
    this.list = new List(document.getElementById("waiting"), (item) => item.tenant.id, (item) => new Waiter(item));
    this.none = document.getElementById("waiting-none");
  }

  show(state) {
    const waiters = state.tenants
      .filter((tenant) => tenant.memory_wait)
      .sort((a, b) => a.memory_wait.place - b.memory_wait.place)
      .map((tenant) => ({ tenant, why: whyOf(state, tenant) }));
    this.list.show(waiters);
    setHidden(this.none, waiters.length > 0);
  }
}
