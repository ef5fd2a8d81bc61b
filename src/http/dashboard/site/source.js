// What the daemon says: its state as it changes, and answers to what is asked of it.

let token = sessionStorage.getItem("allot-token") ?? "";

export function setToken(value) {
  token = value;
  if (value) sessionStorage.setItem("allot-token", value);
  else sessionStorage.removeItem("allot-token");
}

// By a header and never by a cookie: no other site can have a browser send it.
function headers(more = {}) {
  return token ? { Authorization: `Bearer ${token}`, ...more } : more;
}

export async function ask(path) {
  const answer = await fetch(path, { headers: headers() });
  if (!answer.ok) throw Object.assign(new Error((await answer.text()).trim()), { status: answer.status });
  return answer.json();
}

// The control protocol's reply; throws with its one line where it was refused.
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

// Calls tell(state) as states come, until `signal` is aborted; ends, by an error or without, when the stream does.
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

// Follows while the page is seen, and tries again when that ends. Each time told.mayBegin(), then told.begins() beside the stream's
// told.state(state); in the end told.lost(error) or told.refused(error).
// `path`(): where states are, which may be another each time.
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
      // What was before is asked for together with what is now: neither waits for the other.
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
