// The line that says how fresh the page is: whether figures come, or since when they are old, and why.
import { setClass, setText } from "./format.js";

const SILENCE_MS = 7000;

export class Connection {
  // `program`: what answers. `isRegular`: it sends something at least every few seconds, so that silence says that it hangs.
  constructor(program, isRegular = false) {
    Object.assign(this, { program, begunAt: performance.now(), heardAt: null });
    this.element = document.getElementById("connection");
    if (isRegular) setInterval(() => this.listen(), 1000);
  }

  say(text, isLost = false) {
    setText(this.element, text);
    setClass(this.element, isLost ? "lost" : "");
    // Old figures lose their colours.
    setClass(document.body, isLost && this.heardAt ? "old" : "");
  }

  // A new try: how long nothing has come counts from here.
  begin() {
    this.begunAt = performance.now();
  }

  live(text) {
    this.begin();
    this.heardAt = new Date();
    this.say(text);
  }

  age() {
    return this.heardAt ? ` The figures are from ${this.heardAt.toTimeString().slice(0, 8)}.` : "";
  }

  lost(error) {
    const why = error?.status ? `${this.program} refuses: ${error.message}` : `${this.program} does not answer`;
    this.say(`${why}; trying again.${this.age()}`, true);
  }

  refused() {
    this.say(`This page needs a token: choose Token.${this.age()}`, true);
  }

  listen() {
    if (document.hidden) this.begin();
    else if (performance.now() - this.begunAt > SILENCE_MS && this.element.className !== "lost")
      this.say(`${this.program} sends nothing.${this.age()}`, true);
  }
}
