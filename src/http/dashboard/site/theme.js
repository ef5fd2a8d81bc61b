// The dark or light theme, chosen by the user or the system; and keys that work anywhere on the page.
import { forgetVariables, setText } from "./format.js";

const themes = ["auto", "dark", "light"];

export class Theme {
  // Calls changed() when the colours have changed.
  constructor(changed) {
    this.changed = changed;
    this.prefersDark = matchMedia("(prefers-color-scheme: dark)");
    this.button = document.getElementById("theme");
    this.button.onclick = () => this.next();
    this.prefersDark.addEventListener("change", () => this.show());
    this.show();
  }

  get chosen() {
    const chosen = localStorage.getItem("allot-theme");
    return themes.includes(chosen) ? chosen : "auto";
  }

  show() {
    const { chosen } = this;
    const isDark = chosen === "dark" || (chosen === "auto" && this.prefersDark.matches);
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    forgetVariables();
    setText(this.button, `Theme: ${chosen}`);
    this.button.setAttribute("aria-label", `Theme: ${chosen === "auto" ? "as the system has it" : chosen}`);
    this.changed();
  }

  next() {
    localStorage.setItem("allot-theme", themes[(themes.indexOf(this.chosen) + 1) % themes.length]);
    this.show();
  }
}

// Calls the function of a pressed key, except while the user types in a field or a dialog is open.
export function onKeys(keys) {
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.matches("input, select, textarea") || document.querySelector("dialog[open]");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
}
