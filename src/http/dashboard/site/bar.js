// A bar that shows a share, with an optional mark and with figures beside it; and a card with two such bars.
import { make, setClass, setText } from "./format.js";

// Rounds to half percents, about a pixel, so that changes that can't be seen are not drawn.
function partOf(value) {
  return `${Math.round(200 * Math.min(1, Math.max(0, value || 0))) / 2}%`;
}

// The bar is the background of one element (page.css), so that a change needs no layout. Screen readers skip it.
export class Bar {
  constructor() {
    this.element = make("span", { className: "bar", "aria-hidden": "true" });
    this.figures = make("span", { className: "figures" });
  }

  // `part` and `mark` are from 0 to 1; a `mark` of null draws no mark.
  show(part, mark, figures) {
    const size = `${partOf(part)} 100%`;
    if (mark === null) {
      setClass(this.element, "bar");
      this.set("backgroundSize", size);
    } else {
      setClass(this.element, "bar marked");
      this.set("backgroundSize", `3px 100%, ${size}`);
      this.set("backgroundPosition", `${partOf(mark)} 0, 0 0`);
    }
    setText(this.figures, figures);
  }

  set(name, value) {
    if (this[name] !== value) this.element.style[name] = this[name] = value;
  }

  cell() {
    return make("td", {}, make("span", { className: "pair" }, this.element, this.figures));
  }
}

// A card of one GPU or of all GPUs: how much compute and memory is in use or promised, and notes below.
export class Card {
  // `compute` is a Bar, or an object with the same show() that draws its figures itself.
  constructor(element, heading = "", compute = new Bar()) {
    this.compute = compute;
    this.memory = new Bar();
    this.note = make("p", { className: "note" });
    const rows = [["Compute", this.compute], ["Memory", this.memory]].map(([title, bar]) =>
      make("div", { className: "row" }, make("span", {}, title), bar.element, ...(bar.figures ? [bar.figures] : [])));
    this.element = element;
    element.replaceChildren(heading, ...rows, this.note);
  }

  // `compute` and `memory` are lists of Bar.show()'s arguments. `kind` is the class of the notes: "", "warn" or "bad".
  show({ compute, memory, notes, kind }) {
    this.compute.show(...compute);
    this.memory.show(...memory);
    setText(this.note, notes.join(" · "));
    setClass(this.note, `note ${kind}`);
  }
}
