// Formats figures for people, and changes elements only if what they show has changed.

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

export const GIB = 2 ** 30;

export function bytes(value) {
  if (value === null || value === undefined) return "not known";
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function percent(value) {
  return `${value < 10 && value % 1 ? value.toFixed(1) : Math.round(value)} %`;
}

export function seconds(value) {
  if (value < 60) return `${value.toFixed(1)} s`;
  const minutes = Math.floor(value / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(value % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function milliseconds(value) {
  if (value >= 1000) return seconds(value / 1000);
  return `${value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : Math.round(value)} ms`;
}

export function rate(perSecond) {
  return `${perSecond < 100 ? perSecond.toPrecision(2) : Math.round(perSecond)}/s`;
}

export function count(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

// Returns a new element: make("td", {className: "number"}, "text", child...)
export function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties))
    if (key.includes("-") || key === "role" || key === "scope") element.setAttribute(key, value);
    else element[key] = value;
  element.append(...children);
  return element;
}

// Writes only a changed text: reading it is cheap, and writing it makes the browser draw.
export function setText(element, text) {
  const { firstChild } = element;
  if (!firstChild) element.append(text);
  else if (firstChild.data !== text) firstChild.data = text;
}

export function setClass(element, name) {
  if (element.className !== name) element.className = name;
}

export function setHidden(element, isHidden) {
  if (element.hidden !== isHidden) element.hidden = isHidden;
}

export function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

// Keeps one child of `parent` for each item, after the children that are there already. keyOf(item) identifies the item,
// make(item) returns its part, and the part's show(item) updates it.
export class List {
  constructor(parent, keyOf, make) {
    Object.assign(this, { parent, keyOf, make, parts: new Map(), keys: [], head: parent.lastElementChild });
  }

  show(items) {
    const keys = items.map(this.keyOf);
    if (keys.length !== this.keys.length || keys.some((key, i) => key !== this.keys[i])) this.arrange(items);
    this.keys = keys;
    items.forEach((item, i) => this.parts.get(keys[i]).show(item));
  }

  arrange(items) {
    const before = this.parts;
    this.parts = new Map();
    let place = this.head ? this.head.nextElementSibling : this.parent.firstElementChild;
    for (const item of items) {
      const key = this.keyOf(item);
      const part = before.get(key) ?? this.make(item);
      before.delete(key);
      this.parts.set(key, part);
      if (part.element === place) place = place.nextElementSibling;
      else this.parent.insertBefore(part.element, place);
    }
    for (const { element } of before.values()) if (element.parentNode === this.parent) element.remove();
  }
}

// How the page marks a tenant besides its name: with a letter, a colour and a kind of line, the same everywhere.
const marks = new Map();
const colours = 8;
export const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

export function markOf(name) {
  if (!marks.has(name)) {
    const index = marks.size;
    const turn = Math.floor(index / 26);
    marks.set(name, {
      letter: String.fromCharCode(65 + (index % 26)) + (turn || ""),
      colour: index % colours,
      dash: index % dashes.length,
    });
  }
  return marks.get(name);
}

export function badge(name) {
  const mark = markOf(name);
  return make("span", { className: `badge m${mark.colour} d${mark.dash}`, "aria-hidden": "true" }, mark.letter);
}

// The theme's colours, for canvases, which no style sheet reaches. Asking makes the browser compute all styles, so the answers
// are kept.
const variables = new Map();

export function variable(name) {
  if (!variables.has(name))
    variables.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return variables.get(name);
}

// Call when the theme has changed.
export function forgetVariables() {
  variables.clear();
}

export function colourOf(mark) {
  return variable(`m${mark.colour}`);
}
