// Tells what is in view. Pictures are drawn only while in view, and folded lists are filled when they are opened. Other text is
// always written, because screen readers and searches read the whole page.
import { List } from "./format.js";

const watched = new WeakMap();
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) watched.get(target)(isIntersecting);
});

// Calls tell(true) when a part of the element comes into view, and tell(false) when no part is in view any more.
export function watchView(element, tell) {
  watched.set(element, tell);
  observer.observe(element);
}

// Calls tell() when the size of a pixel changes: the page was zoomed, or moved to another screen.
export function watchScale(tell) {
  const now = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
  now.addEventListener("change", () => {
    tell();
    watchScale(tell);
  }, { once: true });
}

// A List within <details>. It calls items() and shows them only while the element is open.
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
