// The list of tenants and containers whose memory was moved off its GPU, and the list of frozen containers.
import { List, badge, bytes, count, make, seconds, setHidden, setText } from "./format.js";

const WAYS = {
  in: "on the GPU", leaving: "moving off the GPU", out: "off the GPU", returning: "moving back to the GPU",
  short: "off the GPU, which has no room for it to return", stuck: "in part on the GPU, in part off it",
};

// Returns namespace/pod/name for a pod's container, else the container engine's name for it, else the start of its id.
export function nameOf(container) {
  if (container.pod) return `${container.namespace}/${container.pod}/${container.name}`;
  return container.name ?? container.id.slice(0, 12);
}

class Line {
  constructor({ name, isTenant }) {
    this.text = make("span");
    this.element = make("li", {}, ...(isTenant ? [badge(name)] : []), make("strong", {}, name), " ", this.text);
  }

  show({ text }) {
    setText(this.text, text);
  }
}

function textOfSwap(swap) {
  const parts = [WAYS[swap.state] ?? swap.state];
  if (swap.swapped_bytes) parts.unshift(bytes(swap.swapped_bytes));
  if (swap.moved_s) parts.push(`its last move took ${seconds(swap.moved_s)}`);
  if (swap.failed) parts.push(`${count(swap.failed, "move")} failed${swap.error ? `: ${swap.error}` : ""}`);
  return parts.join(", ");
}

function holds(container) {
  return container.devices.map((device) => `${bytes(device.memory_used_bytes)} of GPU ${device.index}`).join(", ") || "no memory yet";
}

export class Moved {
  constructor() {
    this.moved = new List(document.getElementById("moved"), (item) => item.key, (item) => new Line(item));
    this.none = document.getElementById("moved-none");
    this.frozen = new List(document.getElementById("frozen"), (item) => item.key, (item) => new Line(item));
    this.section = document.getElementById("frozen-section");
    this.noneFrozen = document.getElementById("frozen-none");
  }

  show(state) {
    const isAway = (swap) => swap && (swap.state !== "in" || swap.swapped_bytes > 0);
    const moved = [
      ...state.tenants.filter((tenant) => isAway(tenant.swap))
        .map((tenant) => ({ key: tenant.id, name: tenant.name, isTenant: true, text: textOfSwap(tenant.swap) })),
      ...state.containers.filter((container) => isAway(container.swap))
        .map((container) => ({ key: container.id, name: nameOf(container), text: textOfSwap(container.swap) })),
    ];
    // Paused containers come last. Of the waiting ones, the container that has used least time is the next to run.
    const frozen = state.containers.filter((container) => ["waiting", "paused"].includes(container.state))
      .sort((a, b) => (a.state === b.state ? a.faded_use_s - b.faded_use_s : a.state === "waiting" ? -1 : 1))
      .map((container) => ({
        key: container.id, name: nameOf(container),
        text: `${container.state === "paused" ? "paused by a user" : "frozen until the GPU has room"}, for ${seconds(container.frozen_now_s)}: ` +
          `holds ${holds(container)}; used ${seconds(container.faded_use_s)} lately`,
      }));
    this.moved.show(moved);
    setHidden(this.none, moved.length > 0);
    this.frozen.show(frozen);
    setHidden(this.section, !state.freezer && !frozen.length);
    setHidden(this.noneFrozen, frozen.length > 0);
  }
}
