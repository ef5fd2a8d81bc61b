// The node that the user has opened: its GPUs, the links between them, and each pod's share of them.
import { Card } from "./bar.js";
import { List, badge, bytes, count, make, markOf, percent, setHidden, setText } from "./format.js";
import { Topology } from "./topology.js";

const MIB = 2 ** 20;

class DeviceCard extends Card {
  constructor(device) {
    super(make("li"), make("h4", {}, `GPU ${device.index} `, make("span", {}, device.name)));
  }

  show(device) {
    const isUsedKnown = device.used_pct !== undefined;
    const usedBytes = device.used_mib * MIB;
    const isWell = device.health === "healthy";
    const notes = [`${device.slots_used} of at most ${device.slots} containers`];
    if (device.cordoned) notes.push("cordoned: takes no new pods");
    if (!isWell) notes.push("unhealthy");
    super.show({
      compute: [device.promised_cores_pct / device.cores_pct, isUsedKnown ? device.used_pct / 100 : null,
        `${percent(device.promised_cores_pct)} promised${isUsedKnown ? `, ${percent(device.used_pct)} used` : ""}`],
      memory: [device.promised_bytes / device.memory_bytes, isUsedKnown ? usedBytes / device.memory_bytes : null,
        `${bytes(device.promised_bytes)} of ${bytes(device.memory_bytes)} promised${isUsedKnown ? `, ${bytes(usedBytes)} used` : ""}`],
      notes, kind: !isWell ? "bad" : device.cordoned ? "warn" : "",
    });
  }
}

class Share {
  constructor({ name }) {
    this.cells = [make("td"), make("td"), make("td", { className: "number" }), make("td", { className: "number" })];
    this.element = make("tr", {}, make("th", { scope: "row" }, badge(name), name), ...this.cells);
  }

  show({ pod, share }) {
    [pod.state, share.index === null ? `${share.card}, which the node does not report` : String(share.index),
      share.cores_pct ? percent(share.cores_pct) : "no guarantee", bytes(share.memory_mib * MIB)]
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
    this.cards = new List(document.getElementById("open-cards"), (device) => device.uuid, (device) => new DeviceCard(device));
    this.shares = new List(document.getElementById("open-pods").tBodies[0], (item) => item.key, (item) => new Share(item));
    document.getElementById("open-close").onclick = this.close;
  }

  show(node, asked) {
    const name = node?.node ?? asked;
    setHidden(this.section, !name);
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
    // Move the focus to the node when it is opened, because it is below the table in which the user chose it.
    if (this.name !== name) this.title.focus();
    this.name = name;
  }

  showNote(node) {
    const more = (node?.pods_seen ?? 0) - (node?.pods.length ?? 0);
    setHidden(this.link, !node?.url);
    if (node?.url && this.link.href !== node.url) this.link.href = node.url;
    setText(this.note, !node ? "allot-scheduler knows no such node." : node.why ? `set aside: ${node.why}` : more > 0 ? `${count(more, "more pod")} on it` : "");
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
