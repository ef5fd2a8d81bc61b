// What changes with every state, drawn into one picture that lies over a list. To lay out, style and paint the same as text costs a
// browser three times as much, and a picture for each as much again. Where each is drawn is a place of its own in the list, by whose
// label readers of the screen are told, which costs nothing where nobody listens.
import { make, variable } from "./format.js";
import { watchView } from "./view.js";

// The shorthand is empty where one of its parts has a value that it can't say, as font-variant-numeric has here, and a canvas then
// keeps its own font of 10 px.
function fontOf(element) {
  const { fontStyle, fontWeight, fontSize, fontFamily } = getComputedStyle(element);
  return `${fontStyle} ${fontWeight} ${fontSize} ${fontFamily}`;
}

export class Board {
  // `drawingsOf`(): the Drawings in `container`. Their words have the font of their places, which is one.
  constructor(container, drawingsOf) {
    Object.assign(this, { container, drawingsOf, isSeen: false, isPlaced: false });
    this.canvas = make("canvas", { className: "board", width: 0, height: 0, "aria-hidden": "true" });
    container.append(this.canvas);
    // Places move with the size of what has them, and else where later() is called.
    new ResizeObserver(() => this.redraw()).observe(container);
    watchView(container, (isSeen) => {
      this.isSeen = isSeen;
      this.redraw();
    });
  }

  // Once before the next time that something is shown, and not while nothing is. Drawings may be elsewhere now: `isMoved`.
  later(isMoved = false) {
    if (isMoved) this.isPlaced = false;
    if (this.isSeen) this.frame ??= requestAnimationFrame(() => (this.isPlaced ? this.draw() : this.redraw()));
  }

  // What is where, colours or scale are others. What is not seen keeps no picture. To ask for places makes the browser lay out what
  // has changed, so the first one that asks does that for all.
  redraw() {
    const at = this.container.getBoundingClientRect();
    this.drawings = this.isSeen && at.width ? this.drawingsOf() : [];
    this.isPlaced = this.drawings.length > 0;
    if (this.isPlaced) this.place(at);
    else Object.assign(this.canvas, { width: 0, height: 0 });
  }

  // No larger than need be: a browser copies all of a picture that is another.
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

  // All of it: to keep some of a picture, a browser copies all of it.
  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = undefined;
    this.paint.clearRect(0, 0, this.canvas.width, this.canvas.height);
    for (const drawing of this.drawings) drawing.picture(this.paint, drawing.box);
  }
}

// What is drawn in one place. Of those that extend it, picture(paint, box) draws.
export class Drawing {
  // `at`.board: where it is drawn, which may be another later. `ink`: what colour its words have.
  constructor(at, ink = "ink") {
    Object.assign(this, { at, ink, text: "" });
    this.element = make("span", { className: "drawing", role: "img" });
  }

  // What can't be told from what is there is not drawn.
  change(text, ...more) {
    const wanted = [text, ...more].join();
    if (this.wanted === wanted) return;
    this.wanted = wanted;
    if (this.text !== text) this.element.setAttribute("aria-label", (this.text = text));
    this.at.board?.later();
  }

  // In less room than it has, letters are narrower.
  write(paint, x, y, room) {
    paint.fillStyle = variable(this.ink);
    paint.fillText(this.text, x, y + 0.5, Math.max(1, room));
  }
}
