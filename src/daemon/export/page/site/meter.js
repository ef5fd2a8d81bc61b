// What a Board has of a tenant and of a GPU: a word, figures, a bar with figures beside or below it.
import { Drawing } from "./board.js";
import { variable } from "./format.js";

// As .bar has it, in what the root's font has.
const REM = parseFloat(getComputedStyle(document.documentElement).fontSize);
const GAP = 0.4 * REM; // between bar and figures
const BAR = { height: 0.75 * REM, least: 3 * REM, most: 5 * REM };
const MARK = 3;

// In a colour of page.css that says how bad it is.
export class Word extends Drawing {
  show(text, colour) {
    this.ink = colour || "ink";
    this.change(text, this.ink);
  }

  picture(paint, { x, y, width, height }) {
    paint.textAlign = "left";
    this.write(paint, x, y + height / 2, width);
  }
}

export class Figures extends Drawing {
  show(text) {
    this.change(text);
  }

  picture(paint, { x, y, width, height }) {
    paint.textAlign = "right";
    this.write(paint, x + width, y + height / 2, width);
  }
}

// As Bar of bar.js: `part` and `mark` of 1; mark null: there is none.
class Meter extends Drawing {
  show(part, mark, figures) {
    const bounded = (value) => Math.min(1, Math.max(0, value || 0));
    Object.assign(this, { part: bounded(part), mark: mark === null ? null : bounded(mark) });
    const steps = Math.round(this.length ?? 0) || 200;
    this.change(figures, Math.round(this.part * steps), mark === null ? "" : Math.round(this.mark * steps));
  }

  bar(paint, x, middle, length) {
    const { part, mark } = this;
    const { height } = BAR;
    const top = middle - height / 2;
    this.length = length;
    paint.textAlign = "left";
    paint.fillStyle = variable("track");
    paint.fillRect(x, top, length, height);
    paint.fillStyle = variable("fill");
    paint.fillRect(x, top, Math.round(part * length), height);
    if (mark === null) return;
    paint.fillStyle = variable("mark");
    paint.fillRect(x + Math.round(mark * (length - MARK)), top, MARK, height);
  }
}

// The bar, and its figures beside it.
export class RowMeter extends Meter {
  picture(paint, { x, y, width, height }) {
    if (this.measured !== this.text) this.needed = paint.measureText((this.measured = this.text)).width;
    const room = width - this.needed - GAP;
    const length = Math.round(Math.max(BAR.least, Math.min(BAR.most, room)));
    this.bar(paint, x, y + height / 2, length);
    this.write(paint, x + length + GAP, y + height / 2, width - length - GAP);
  }
}

// The bar, and its figures below it.
export class CardMeter extends Meter {
  constructor(at) {
    super(at, "soft");
  }

  picture(paint, { x, y, width, height }) {
    this.bar(paint, x, y + height / 4, width);
    this.write(paint, x, y + (3 * height) / 4, width);
  }
}
