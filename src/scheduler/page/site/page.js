// The cluster's page: asks allot-scheduler for what the user looks at, and passes the changes that come to the page's parts.
import { Card } from "./bar.js";
import { Connection } from "./connection.js";
import { bytes, count, percent, setText } from "./format.js";
import { Nodes } from "./nodes.js";
import { Open } from "./open.js";
import { Past } from "./past.js";
import { Pods } from "./pods.js";
import { Source, ask, setToken } from "./source.js";
import { Theme, onKeys } from "./theme.js";
import { TokenDialog } from "./token.js";

const SUMMARY_MS = 3000;
const TYPING_MS = 250;
const connection = new Connection("allot-scheduler");
const summary = document.getElementById("summary");
const filterError = document.getElementById("filter-error");

// ---- filters and the open node: kept in the address, so that the user can send it to somebody ----

const fields = { node: "filter-node", namespace: "filter-namespace", node_state: "filter-node-state", pod_state: "filter-pod-state" };
const view = new URLSearchParams(location.hash.slice(1));
for (const [name, id] of Object.entries(fields)) {
  const field = document.getElementById(id);
  if (view.has(name)) field.value = view.get(name);
  // Kubernetes names have no capitals, so the input is lower-cased.
  const whatever = field.matches("select") ? field.options[0].value : "";
  const take = () => look({
    [name]: field.value === whatever ? "" : field.value.trim().toLowerCase(), nodes_from: "", pods_from: "",
  });
  let timer;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(take, field.matches("select") ? 0 : TYPING_MS);
  });
}
document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());

function look(changes) {
  const before = view.toString();
  for (const [name, value] of Object.entries(changes))
    if (value === "" || value === null) view.delete(name);
    else view.set(name, value);
  if (view.toString() === before) return;
  history.replaceState(null, "", view.size ? `#${view}` : location.pathname);
  source.start();
}

// ---- the page's parts ----

const nodes = new Nodes({ look, view });
const pods = new Pods({ look, view });
const open = new Open(() => look({ open: "" }));
const past = new Past();
const token = new TokenDialog((value) => {
  setToken(value);
  source.start();
});

class Cluster extends Card {
  show(all) {
    const cores = all.cores_pct ? (100 * all.promised_cores_pct) / all.cores_pct : 0;
    const notes = [count(all.nodes, "node"), count(all.cards, "GPU"), `${count(all.shares, "container")} on them`];
    if (all.cards_unhealthy) notes.push(`${count(all.cards_unhealthy, "GPU")} unhealthy`);
    if (all.cards_cordoned) notes.push(`${count(all.cards_cordoned, "GPU")} cordoned`);
    if (all.nodes_aside) notes.push(`${count(all.nodes_aside, "node")} set aside`);
    super.show({
      compute: [cores / 100, null, `${percent(cores)} promised`],
      memory: [all.promised_bytes / all.memory_bytes, null, `${bytes(all.promised_bytes)} of ${bytes(all.memory_bytes)} promised`],
      notes, kind: all.cards_unhealthy || all.nodes_aside ? "bad" : "",
    });
  }
}
const cluster = new Cluster(document.getElementById("cluster"));

// Updates the text that screen readers read out: only if it has changed, and at most every SUMMARY_MS.
let summaryAt = 0;
function summarize(all) {
  const parts = [count(all.nodes, "node"), count(all.cards, "GPU"), count(all.pods, "pod")];
  const text = `${parts.join(", ")}: ${all.pods_waiting} waiting, ${all.pods_reserved} about to be bound.`;
  const now = performance.now();
  if (text === summary.textContent || (now - summaryAt < SUMMARY_MS && summaryAt)) return;
  summaryAt = now;
  summary.textContent = text;
}

// ---- events ----

let state = {};
let seen = 0;
const source = new Source({
  async mayBegin() {
    const rights = await ask("/api/rights");
    if (!rights.read) throw Object.assign(new Error("a token is needed"), { status: 401 });
    setText(filterError, "");
    // The first event of a stream has the whole state.
    state = {};
    nodes.clear();
    pods.clear();
  },

  async begins() {
    past.load(await ask("/api/history"));
  },

  state(event) {
    Object.assign(state, event);
    document.documentElement.dataset.states = ++seen;
    connection.live(state.cluster.ready ? `live, ${state.scheduler}${state.cluster.leads ? "" : " (another replica leads)"}`
      : "allot-scheduler is still reading nodes and pods: some are missing here");
    if (event.cluster) {
      cluster.show(state.cluster);
      summarize(state.cluster);
    }
    if (event.nodes) nodes.take(event.nodes, state.cluster.nodes);
    if (event.pods) pods.take(event.pods, state.cluster.pods);
    if ("open" in event) open.show(event.open, view.get("open"));
    past.add(state.cluster);
  },

  lost(error) {
    if (error?.status === 400) setText(filterError, error.message);
    connection.lost(error);
  },

  refused() {
    const isNamed = Boolean(sessionStorage.getItem("allot-token"));
    connection.refused();
    token.open(isNamed ? "That is not allot-scheduler's token." : "");
  },
}, () => `/events?${view}`);

const theme = new Theme(() => past.rebuild());
onKeys({ "/": () => document.getElementById("filter-node").focus(), t: () => theme.next(), Escape: () => open.close() });

// While nothing changes no event comes, but the charts go on.
setInterval(() => {
  if (!document.hidden && state.cluster) past.add(state.cluster);
}, 1000);

source.start();
