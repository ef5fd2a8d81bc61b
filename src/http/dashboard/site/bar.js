// How far along something is, with a mark where it was asked to be, and the figures beside it; and a card of two of them.
import { make, setClass, setText } from "./format.js";

// In steps that are about a pixel: what can't be seen is not drawn.
function partOf(value) {
  return `${Math.round(200 * Math.min(1, Math.max(0, value || 0))) / 2}%`;
}

// One element and what is painted behind it (page.css), so that a change of it moves nothing. It is for the eye alone.
export class Bar {
  constructor() {
    this.element = make("span", { className: "bar", "aria-hidden": "true" });
    this.figures = make("span", { className: "figures" });
  }

  // `mark` null: there is none.
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

// Of a GPU, or of all of them: how much of its compute and memory is in use or promised, and what is to be said of it.
export class Card {
  // `compute`: a Bar, or what is shown as one and has its figures within.
  constructor(element, heading = "", compute = new Bar()) {
    this.compute = compute;
    this.memory = new Bar();
    this.note = make("p", { className: "note" });
    const rows = [["Compute", this.compute], ["Memory", this.memory]].map(([title, bar]) =>
      make("div", { className: "row" }, make("span", {}, title), bar.element, ...(bar.figures ? [bar.figures] : [])));
    this.element = element;
    element.replaceChildren(heading, ...rows, this.note);
  }

  // `compute` and `memory` as Bar.show() has them; `kind`: how bad it is.
  show({ compute, memory, notes, kind }) {
    this.compute.show(...compute);
    this.memory.show(...memory);
    setText(this.note, notes.join(" · "));
    setClass(this.note, `note ${kind}`);
  }
}
