// What is in view: pictures are drawn only there, and what is folded is written when it is opened. Other text is not held back, as
// readers of the screen and searches go everywhere.
import { List } from "./format.js";

const watched = new WeakMap();
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) watched.get(target)(isIntersecting);
});

// Calls tell(true) when some of the element comes into view, and tell(false) when none is any more.
export function watchView(element, tell) {
  watched.set(element, tell);
  observer.observe(element);
}

// Calls tell() when a pixel of the page has another size: the page is zoomed, or on another screen.
export function watchScale(tell) {
  const now = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
  now.addEventListener("change", () => {
    tell();
    watchScale(tell);
  }, { once: true });
}

// A List within <details>: show(items()) while that is open.
export class FoldedList extends List {
  constructor(parent, keyOf, make) {
    super(parent, keyOf, make);
    this.details = parent.closest("details");
    this.details.addEventListener("toggle", () => this.items && this.show(this.items));
  }

  show(items) {
    this.items = items;
    if (this.details.open) super.show(items());
  }
}
