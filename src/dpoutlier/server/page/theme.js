// Dark or light: as the system has it, until the button says otherwise. Nothing is stored.

import { $ } from "./dom.js";

const dark = matchMedia("(prefers-color-scheme: dark)");

export function themeButton() {
  const button = $("theme");
  const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const show = () => (button.textContent = isDark() ? "Light theme" : "Dark theme");
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    show();
  });
  dark.addEventListener("change", show);
  show();
}
