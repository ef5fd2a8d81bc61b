// One node: its GPUs, how they hang together, and which pods have what of them.
import { Bar, List, badge, bytes, make, markOf, percent, setClass, setText } from "./format.js";
import { Topology } from "./topology.js";

const MIB = 2 ** 20;

class Card {
  constructor(device) {
    this.compute = new Bar();
    this.memory = new Bar();
    this.computeText = make("span", { className: "figures" });
    this.memoryText = make("span", { className: "figures" });
    this.note = make("p", { className: "note" });
    this.element = make("li", {},
      make("h4", {}, `GPU ${device.index} `, make("span", {}, device.name)),
      make("div", { className: "row" }, make("span", {}, "Compute"), this.compute.element, this.computeText),
      make("div", { className: "row" }, make("span", {}, "Memory"), this.memory.element, this.memoryText), this.note);
  }

  show(device) {
    const used = device.used_pct === undefined ? null : device.used_pct;
    this.compute.show(device.promised_cores_pct / device.cores_pct, used === null ? null : used / 100);
    this.memory.show(device.promised_bytes / device.memory_bytes, used === null ? null : (device.used_mib * MIB) / device.memory_bytes);
    setText(this.computeText, `${percent(device.promised_cores_pct)} promised${used === null ? "" : `, ${percent(used)} used`}`);
    setText(this.memoryText, `${bytes(device.promised_bytes)} of ${bytes(device.memory_bytes)} promised` +
      (used === null ? "" : `, ${bytes(device.used_mib * MIB)} used`));
    const notes = [`${device.slots_used} of ${device.slots} places taken`];
    if (device.cordoned) notes.push("cordoned: takes no new pods");
    if (device.health !== "healthy") notes.push("not well");
    setText(this.note, notes.join(" · "));
    setClass(this.note, `note ${device.health !== "healthy" ? "bad" : device.cordoned ? "warn" : ""}`);
  }
}

class Share {
  constructor({ name }) {
    this.cells = [make("td"), make("td"), make("td", { className: "number" }), make("td", { className: "number" })];
    this.element = make("tr", {}, make("th", { scope: "row" }, badge(name), name), ...this.cells);
  }

  show({ pod, share }) {
    [pod.state, share.index === null ? `${share.card}, which is not there` : String(share.index),
      share.cores_pct ? percent(share.cores_pct) : "no share", bytes(share.memory_mib * MIB)]
      .forEach((text, i) => setText(this.cells[i], text));
  }
}

export class Open {
  constructor(close) {
    this.close = () => {
      if (!this.section.hidden) close();
    };
    this.section = document.getElementById("open");
    this.title = document.getElementById("open-title");
    this.link = document.getElementById("open-link");
    this.note = document.getElementById("open-note");
    this.topology = new Topology();
    this.cards = new List(document.getElementById("open-cards"), (device) => device.uuid, (device) => new Card(device));
    this.shares = new List(document.getElementById("open-pods").tBodies[0], (item) => item.key, (item) => new Share(item));
    document.getElementById("open-close").onclick = this.close;
  }

  show(node, asked) {
    const name = node?.node ?? asked;
    this.section.hidden = !name;
    if (!name) {
      this.name = null;
      return;
    }
    setText(this.title, `Node ${name}`);
    this.showNote(node);
    const devices = node?.devices ?? [];
    const pods = node?.pods ?? [];
    for (const pod of pods) markOf(`${pod.namespace}/${pod.pod}`);
    this.cards.show(devices);
    this.shares.show(pods.flatMap((pod) => pod.shares.map((share) => ({
      pod, share, name: `${pod.namespace}/${pod.pod}`, key: `${pod.uid}/${share.container}/${share.card}`,
    }))));
    this.showTopology(devices, node?.links ?? [], pods);
    // To where it is, once: below the table that it was chosen in.
    if (this.name !== name) this.title.focus();
    this.name = name;
  }

  showNote(node) {
    const more = (node?.pods_seen ?? 0) - (node?.pods.length ?? 0);
    this.link.hidden = !node?.url;
    if (node?.url) this.link.href = node.url;
    setText(this.note, !node ? "is not there" : node.why ? `set aside: ${node.why}` : more > 0 ? `${more} pods more are on it` : "");
  }

  showTopology(devices, links, pods) {
    const drawn = JSON.stringify([devices.map((device) => device.uuid), links]);
    if (drawn !== this.drawn) this.topology.load({ devices, links });
    this.drawn = drawn;
    this.topology.show({
      devices: devices.map((device) => ({ ...device, busy_pct: (100 * device.promised_cores_pct) / device.cores_pct })),
      tenants: pods.map((pod) => ({ name: `${pod.namespace}/${pod.pod}`, devices: pod.shares })),
    });
  }
}
