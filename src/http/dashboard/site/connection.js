// The line that says whether the page is live or, if not, how old its figures are and why.
import { setClass, setText } from "./format.js";

const SILENCE_MS = 7000;

export class Connection {
  // `program` is the server's name. `isRegular`: it sends something every few seconds, so silence means that it hangs.
  constructor(program, isRegular = false) {
    Object.assign(this, { program, begunAt: performance.now(), heardAt: null });
    this.element = document.getElementById("connection");
    if (isRegular) setInterval(() => this.listen(), 1000);
  }

  say(text, isLost = false) {
    setText(this.element, text);
    setClass(this.element, isLost ? "lost" : "");
    // Show old figures without colours.
    setClass(document.body, isLost && this.heardAt ? "old" : "");
  }

  // Call for each attempt to connect: the time of silence starts anew.
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
