// The color theme: light, dark, or that of the system.

import { byID } from "./dom.js";

const key = "wakegate-theme";
const themes = ["auto", "light", "dark"];

function apply(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  byID("theme").textContent = `Theme: ${theme}`;
}

export function startTheme() {
  let theme = themes.includes(localStorage.getItem(key)) ? localStorage.getItem(key) : "auto";
  apply(theme);
  byID("theme").addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    localStorage.setItem(key, theme);
    apply(theme);
  });
}
