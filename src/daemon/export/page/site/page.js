// The daemon's page: passes each event from the daemon to the parts of the page.
import { Cards } from "./cards.js";
import { Charts } from "./charts.js";
import { Connection } from "./connection.js";
import { SetDialog } from "./dialogs.js";
import { count, setText } from "./format.js";
import { Known } from "./known.js";
import { Leases } from "./leases.js";
import { Moved } from "./moved.js";
import { Record } from "./record.js";
import { Source, ask, change, setToken } from "./source.js";
import { Tenants } from "./tenants.js";
import { Theme, onKeys } from "./theme.js";
import { TokenDialog } from "./token.js";
import { Topology } from "./topology.js";
import { watchScale } from "./view.js";
import { Waiting } from "./waiting.js";

const SUMMARY_MS = 3000;
const connection = new Connection("allotd", true);
const actError = document.getElementById("act-error");
const summary = document.getElementById("summary");

const record = new Record();
const rights = { read: false, change: false };
const token = new TokenDialog((value) => {
  setToken(value);
  source.start();
});
const dialog = new SetDialog(change);
const tenants = new Tenants({
  pause: (tenant) => act(tenant.state === "paused" ? "resume" : "pause", { name: tenant.id }),
  set: (tenant) => dialog.open(tenant),
});
const parts = { cards: new Cards(), waiting: new Waiting(), moved: new Moved(), leases: new Leases(), topology: new Topology() };
const charts = new Charts(tenants);

async function act(operation, request) {
  let said = "";
  try {
    await change(operation, request);
  } catch (error) {
    said = error.message;
  }
  setText(actError, said);
}

// Updates the text that screen readers read out: only if it has changed, and at most every SUMMARY_MS.
let summaryAt = 0;
function summarize(state) {
  const states = new Map();
  for (const tenant of state.tenants) states.set(tenant.state, (states.get(tenant.state) ?? 0) + 1);
  // Leaves out the states that change too often to be read out, such as running and idle.
  const settled = ["queued", "paused", "leaving", "swapped", "returning"].filter((name) => states.has(name))
    .map((name) => `${states.get(name)} ${name === "queued" ? "waiting for memory" : name}`);
  const frozen = state.containers.filter((container) => container.state === "waiting").length;
  if (frozen) settled.push(`${count(frozen, "container")} frozen`);
  const sick = state.devices.filter((device) => device.health !== "healthy").length;
  if (sick) settled.push(`${count(sick, "GPU")} unhealthy`);
  const text = `${count(state.devices.length, "GPU")}, ${count(state.tenants.length, "tenant")}` +
    (settled.length ? `: ${settled.join(", ")}.` : ".");
  const now = performance.now();
  if (text === summary.textContent || now - summaryAt < SUMMARY_MS && summaryAt) return;
  summaryAt = now;
  summary.textContent = text;
}

const known = new Known();
let epoch = 0;
let seen = 0;
const source = new Source({
  async mayBegin() {
    connection.begin();
    Object.assign(rights, await ask("/api/rights"));
    if (!rights.read) throw Object.assign(new Error("a token is needed"), { status: 401 });
    parts.leases.clear();
  },

  async begins() {
    const [history, topology] = await Promise.all([ask("/api/history"), ask("/api/topology")]);
    record.load(history);
    parts.topology.load(topology);
  },

  state(event) {
    const state = known.take(event);
    if (state.epoch !== epoch) parts.leases.clear();
    epoch = state.epoch;
    document.documentElement.dataset.states = ++seen;
    setText(document.getElementById("host"), `${state.host}${state.simulated ? " (simulated)" : ""}`);
    connection.live(`live, ${state.daemon}${rights.change ? "" : ", read only"}`);
    summarize(state);
    for (const part of Object.values(parts)) part.show(state);
    tenants.show(state, rights.change);
    if (record.add(state)) charts.show(state, record);
  },

  lost(error) {
    connection.lost(error);
  },

  refused() {
    const isNamed = Boolean(sessionStorage.getItem("allot-token"));
    connection.refused();
    token.open(isNamed ? "That is not the daemon's token." : "");
  },
});

function redraw() {
  for (const part of [parts.cards, tenants]) part.redraw();
}

const theme = new Theme(() => {
  charts.rebuild();
  redraw();
});
watchScale(redraw);
onKeys({ "/": () => tenants.filter.focus(), t: () => theme.next() });

source.start();
