// What is in view: pictures are drawn only there. Text is not held back, as readers of the screen and searches go everywhere.

const watched = new WeakMap();
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) watched.get(target)(isIntersecting);
});

// Calls tell(true) when some of the element comes into view, and tell(false) when none is any more.
export function watchView(element, tell) {
  watched.set(element, tell);
  observer.observe(element);
}
