// What a Board draws of a tenant or a GPU: a word, figures, or a bar with figures beside or below it.
import { Drawing } from "./board.js";
import { variable } from "./format.js";

// The sizes of .bar in page.css, computed from the root element's font size.
const REM = parseFloat(getComputedStyle(document.documentElement).fontSize);
const GAP = 0.4 * REM; // between bar and figures
const BAR = { height: 0.75 * REM, least: 3 * REM, most: 5 * REM };
const MARK = 3;

// A word in a colour of page.css, which shows how bad the state is.
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

// Like Bar in bar.js. `part` and `mark` are from 0 to 1; a `mark` of null draws no mark.
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

// A bar with its figures beside it.
export class RowMeter extends Meter {
  picture(paint, { x, y, width, height }) {
    if (this.measured !== this.text) this.needed = paint.measureText((this.measured = this.text)).width;
    const room = width - this.needed - GAP;
    const length = Math.round(Math.max(BAR.least, Math.min(BAR.most, room)));
    this.bar(paint, x, y + height / 2, length);
    this.write(paint, x + length + GAP, y + height / 2, width - length - GAP);
  }
}

// A bar with its figures below it.
export class CardMeter extends Meter {
  constructor(at) {
    super(at, "soft");
  }

  picture(paint, { x, y, width, height }) {
    this.bar(paint, x, y + height / 4, width);
    this.write(paint, x, y + (3 * height) / 4, width);
  }
}
