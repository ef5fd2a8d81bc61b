// The connection to the server: a stream of events, and single requests.

let token = sessionStorage.getItem("allot-token") ?? "";

export function setToken(value) {
  token = value;
  if (value) sessionStorage.setItem("allot-token", value);
  else sessionStorage.removeItem("allot-token");
}

// The token goes in a header and never in a cookie, so that no other site can make a browser send it.
function headers(more = {}) {
  return token ? { Authorization: `Bearer ${token}`, ...more } : more;
}

export async function ask(path) {
  const answer = await fetch(path, { headers: headers() });
  if (!answer.ok) throw Object.assign(new Error((await answer.text()).trim()), { status: answer.status });
  return answer.json();
}

// Returns the control protocol's reply. Throws its error text if the request was refused.
export async function change(operation, request) {
  const answer = await fetch(`/api/${operation}`, {
    method: "POST",
    headers: headers({ "Content-Type": "application/json" }),
    body: JSON.stringify(request),
  });
  const text = await answer.text();
  let reply;
  try {
    reply = JSON.parse(text);
  } catch {
    throw new Error(text.trim() || `status ${answer.status}`);
  }
  if (!reply.ok) throw new Error(reply.error);
  return reply;
}

// Calls tell(state) for each event until `signal` is aborted. Returns when the stream ends, or throws if it fails.
async function follow(path, signal, tell) {
  const answer = await fetch(path, { headers: headers(), signal });
  if (!answer.ok) throw Object.assign(new Error((await answer.text()).trim()), { status: answer.status });
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let rest = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = decoder.decode(value, { stream: true }).split("\n\n");
    for (const part of parts.slice(0, -1)) {
      const event = rest.join("") + part;
      rest = [];
      if (event.startsWith("data: ")) tell(JSON.parse(event.slice(6)));
    }
    rest.push(parts.at(-1));
  }
}

// Follows the stream of events while the page is visible, and connects again when the stream ends. For each connection it calls
// told.mayBegin(), then told.begins() and, for each event, told.state(state), and at the end told.lost(error) or
// told.refused(error). `path`() returns the stream's path, which may differ each time.
export class Source {
  constructor(told, path = () => "/events") {
    Object.assign(this, { told, path });
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.stop();
      else this.start();
    });
  }

  stop() {
    this.controller?.abort();
    this.controller = null;
    clearTimeout(this.timer);
  }

  async start() {
    this.stop();
    const controller = (this.controller = new AbortController());
    let failure = null;
    try {
      await this.told.mayBegin();
      if (controller.signal.aborted) return;
      // Requests the history and the stream at the same time, so that neither waits for the other.
      await Promise.all([
        this.told.begins(),
        follow(this.path(), controller.signal, (state) => {
          if (this.controller === controller) this.told.state(state);
        }),
      ]);
    } catch (error) {
      failure = error;
    }
    controller.abort();
    if (this.controller !== controller) return;
    if (failure?.status === 401) {
      this.told.refused(failure);
      return;
    }
    this.told.lost(failure);
    this.timer = setTimeout(() => this.start(), 1000);
  }
}
