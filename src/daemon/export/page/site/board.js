// Draws everything in a list that changes with each state into one canvas over the list. As text, the same would cost the
// browser three times as much, and with a canvas for each drawing as much again. Each drawing has an empty element in the list,
// which sets its place, and whose label tells screen readers what is drawn there.
import { make, variable } from "./format.js";
import { watchView } from "./view.js";

// Returns the element's font, put together from its parts. The shorthand `font` is empty if it can't express a value, such as
// that of font-variant-numeric here, and a canvas would then keep its default font of 10 px.
function fontOf(element) {
  const { fontStyle, fontWeight, fontSize, fontFamily } = getComputedStyle(element);
  return `${fontStyle} ${fontWeight} ${fontSize} ${fontFamily}`;
}

export class Board {
  // `drawingsOf`() returns the Drawings in `container`. They all have the font of the first one's element.
  constructor(container, drawingsOf) {
    Object.assign(this, { container, drawingsOf, isSeen: false, isPlaced: false });
    this.canvas = make("canvas", { className: "board", width: 0, height: 0, "aria-hidden": "true" });
    container.append(this.canvas);
    // Places change when the container's size changes. Callers report other changes with later(true).
    new ResizeObserver(() => this.redraw()).observe(container);
    watchView(container, (isSeen) => {
      this.isSeen = isSeen;
      this.redraw();
    });
  }

  // Draws once before the browser's next frame, if the board is in view. `isMoved`: drawings may have other places now.
  later(isMoved = false) {
    if (isMoved) this.isPlaced = false;
    if (this.isSeen) this.frame ??= requestAnimationFrame(() => (this.isPlaced ? this.draw() : this.redraw()));
  }

  // Call when places, colours or the scale have changed. A board out of view keeps no picture. Asking for places makes the
  // browser lay out all changes, so the first board that asks pays for all boards.
  redraw() {
    const at = this.container.getBoundingClientRect();
    this.drawings = this.isSeen && at.width ? this.drawingsOf() : [];
    this.isPlaced = this.drawings.length > 0;
    if (this.isPlaced) this.place(at);
    else Object.assign(this.canvas, { width: 0, height: 0 });
  }

  // Makes the canvas no larger than needed, because a browser copies the whole canvas whenever it changes.
  place(at) {
    const { canvas, drawings } = this;
    const scale = devicePixelRatio;
    const whole = (length) => Math.round(length * scale) / scale;
    const rects = drawings.map(({ element }) => element.getBoundingClientRect());
    const least = (name) => whole(Math.min(...rects.map((rect) => rect[name])) - at[name]);
    const most = (name) => whole(Math.max(...rects.map((rect) => rect[name])) - at[name === "right" ? "left" : "top"]);
    const [x, y] = [least("left"), least("top")];
    const [width, height] = [most("right") - x, most("bottom") - y];
    drawings.forEach((drawing, i) => (drawing.box = {
      x: whole(rects[i].left - at.left) - x, y: whole(rects[i].top - at.top) - y, width: whole(rects[i].width), height: whole(rects[i].height),
    }));
    Object.assign(canvas, { width: Math.round(width * scale), height: Math.round(height * scale) });
    Object.assign(canvas.style, { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` });
    this.paint ??= canvas.getContext("2d");
    this.paint.setTransform(scale, 0, 0, scale, 0, 0);
    this.paint.font = fontOf(drawings[0].element);
    this.paint.textBaseline = "middle";
    this.draw();
  }

  // Draws everything anew: to keep a part, the browser would copy the whole canvas anyway.
  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = undefined;
    this.paint.clearRect(0, 0, this.canvas.width, this.canvas.height);
    for (const drawing of this.drawings) drawing.picture(this.paint, drawing.box);
  }
}

// What is drawn in one place. Subclasses draw it in picture(paint, box).
export class Drawing {
  // `at.board` is the board that draws it, which may change. `ink` is the colour of its text.
  constructor(at, ink = "ink") {
    Object.assign(this, { at, ink, text: "" });
    this.element = make("span", { className: "drawing", role: "img" });
  }

  // Asks for a new drawing only if it would look different.
  change(text, ...more) {
    const wanted = [text, ...more].join();
    if (this.wanted === wanted) return;
    this.wanted = wanted;
    if (this.text !== text) this.element.setAttribute("aria-label", (this.text = text));
    this.at.board?.later();
  }

  // Makes the letters narrower if the text is wider than `room`.
  write(paint, x, y, room) {
    paint.fillStyle = variable(this.ink);
    paint.fillText(this.text, x, y + 0.5, Math.max(1, room));
  }
}
