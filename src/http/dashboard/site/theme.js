// Dark or light, by choice or as the system has it; and keys that do something anywhere on the page.
import { forgetVariables, setText } from "./format.js";

const themes = ["auto", "dark", "light"];

export class Theme {
  // changed(): colours are others now.
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

// Calls the key's function, but where its letter is typed.
export function onKeys(keys) {
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.matches("input, select, textarea") || document.querySelector("dialog[open]");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
}
