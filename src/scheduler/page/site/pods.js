// The table of pods: on which node each is, or why it waits, in the words of `allot explain`.
import { List, bytes, count, make, percent, setClass, setHidden, setText } from "./format.js";
import { Pager } from "./nodes.js";

const MIB = 2 ** 20;
const states = { waiting: ["◷", "warn"], reserved: ["◐", ""], bound: ["●", "good"], ending: ["◌", ""] };
const WORDS = {
  NodeInsufficientDevice: "fewer GPUs than the pod wants together",
  CardNotServed: "the kubelet serves no such resource now: allotd is away, or has another vocabulary",
  CardUseUnknown: "a pod there notes shares of its GPUs that can't be read",
  CardNotHealth: "GPUs are not healthy",
  CardCordoned: "GPUs are cordoned",
  CardTypeMismatch: "GPUs of another type, or mode",
  NumaNotFit: "not enough GPUs on one NUMA node",
  CardUuidMismatch: "GPUs that the pod's annotations do not allow",
  CardTimeSlicingExhausted: "the GPUs have as many containers as may share them",
  ResourceQuotaNotFit: "the namespace's quota is used up",
  CardInsufficientMemory: "too little memory free",
  CardInsufficientCore: "too little compute free",
  ExclusiveDeviceAllocateConflict: "the pod wants a GPU alone, and all are in use",
  CardComputeUnitsExhausted: "all compute is promised",
  AllocatedCardsInsufficientRequest: "too few GPUs that fit",
};

function textOfAsk(ask) {
  const memory = ask.memory_mib === undefined ? ask.memory_pct === 100 ? "all memory" : `${percent(ask.memory_pct)} of the memory`
    : bytes(ask.memory_mib * MIB);
  const cores = ask.cores_pct >= 100 ? ", alone" : ask.cores_pct ? `, ${percent(ask.cores_pct)}` : "";
  return `${ask.cards} × ${memory}${cores}`;
}

function textOfLack({ node, cards, memory_mib: mib, cores_pct: cores }) {
  const amounts = [mib ? bytes(mib * MIB) : "", cores ? `${percent(cores)} of the time` : ""].filter(Boolean);
  return amounts.length ? `${node}: ${count(cards, "GPU")} needs ${amounts.join(" and ")} more free`
    : `${node}: has enough memory and time free`;
}

function textOfGroup({ nodes, node, why, reasons }) {
  const plain = reasons.map((reason) => WORDS[reason]).filter(Boolean);
  return `${nodes === 1 ? node : count(nodes, "node")}: ${plain.length ? `${plain.join("; ")} (${why})` : why}`;
}

class Row {
  constructor({ pod, look }) {
    this.look = look;
    this.state = make("td");
    this.asks = make("td");
    this.node = make("td");
    this.says = make("span");
    this.list = make("ul");
    this.details = make("details", { hidden: true }, make("summary", {}, "reasons by node"), this.list);
    this.element = make("tr", {}, make("th", { scope: "row" }, `${pod.namespace}/${pod.pod}`), this.state, this.asks, this.node,
      make("td", { className: "why" }, this.says, this.details));
  }

  show({ pod }) {
    const [sign, kind] = states[pod.state];
    setText(this.state, `${sign} ${pod.state}`);
    setClass(this.state, kind);
    setText(this.asks, pod.node !== null
      ? `${pod.cards} × GPU, ${bytes(pod.memory_mib * MIB)}${pod.cores_pct ? `, ${percent(pod.cores_pct)}` : ""} in all`
      : (pod.asks ?? []).map(textOfAsk).join("; "));
    this.showNode(pod.node);
    this.showWhy(pod);
  }

  showNode(name) {
    if (this.named === name) return;
    this.named = name;
    const button = name && make("button", { type: "button", className: "link" }, name);
    if (button) button.onclick = () => this.look({ open: name });
    this.node.replaceChildren(...(button ? [button] : []));
  }

  showWhy({ state, broken, gang, why }) {
    const says = broken ? `its request can't be read: ${broken}` : gang ?? (why ? why.says
      : state === "waiting" ? "allot-scheduler is looking for a node" : state === "reserved" ? "about to be bound to a node" : "");
    setText(this.says, says);
    const lines = why ? [
      ...why.groups.map(textOfGroup),
      ...(why.more_nodes ? [`${count(why.more_nodes, "node")} for other reasons`] : []),
      ...why.nearest.map((lack) => `Nearest: ${textOfLack(lack)}`),
      ...why.quotas.map(({ resource, limit, used }) => `Its namespace's quota of ${resource}: ${used} of ${limit} used`),
    ] : [];
    setHidden(this.details, lines.length === 0);
    if (this.lines === lines.join("\n")) return;
    this.lines = lines.join("\n");
    this.list.replaceChildren(...lines.map((line) => make("li", {}, line)));
  }
}

export class Pods {
  constructor({ look }) {
    this.rows = new Map();
    this.look = look;
    this.list = new List(document.getElementById("pod-table").tBodies[0], (item) => item.pod.uid, (item) => new Row(item));
    this.pager = new Pager("pods", (from) => look({ pods_from: from || "" }));
  }

  clear() {
    this.rows.clear();
  }

  // `all` is the number of pods with GPUs without the filters.
  take({ seen, from, keys, rows }, all) {
    for (const row of rows) this.rows.set(row.uid, row);
    const wanted = new Set(keys);
    for (const key of this.rows.keys()) if (!wanted.has(key)) this.rows.delete(key);
    this.list.show(keys.map((key) => ({ pod: this.rows.get(key), look: this.look })));
    this.pager.show({ seen, from, keys }, all ? "No pod matches the filters." : "No pod asks for GPUs.");
  }
}
