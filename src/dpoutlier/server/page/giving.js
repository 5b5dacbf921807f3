// How points are given: a file that is chosen or dropped, rows that are pasted, one row that is typed.

import { $, el } from "./dom.js";
import { rangeOf } from "./model.js";

const TABS = ["file", "paste", "type"];

/** Calls `file(file)`, `text(text)` or `row(values)`. */
export function giving({ file, text, row, ready }) {
  tabs();
  $("file").addEventListener("change", () => {
    const [chosen] = $("file").files;
    if (chosen) file(chosen);
    $("file").value = ""; // the same file may be chosen again
  });
  $("pane-paste").addEventListener("submit", (event) => {
    event.preventDefault();
    text($("paste").value);
  });
  $("pane-type").addEventListener("submit", (event) => {
    event.preventDefault();
    row();
  });
  $("pane-type").addEventListener("reset", () => sayOfRow(""));
  dropping({ file, text, ready });
}

function tabs() {
  for (const [i, name] of TABS.entries()) {
    $(`tab-${name}`).addEventListener("click", () => showTab(name));
    $(`tab-${name}`).addEventListener("keydown", (event) => {
      const to = { ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: TABS.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      showTab(TABS.at(to % TABS.length));
      $(`tab-${TABS.at(to % TABS.length)}`).focus();
    });
  }
}

export function showTab(chosen) {
  for (const name of TABS) {
    const tab = $(`tab-${name}`);
    tab.setAttribute("aria-selected", String(name === chosen));
    tab.tabIndex = name === chosen ? 0 : -1;
    $(`pane-${name}`).hidden = name !== chosen;
  }
}

function dropping({ file, text, ready }) {
  let inside = 0;
  const wanted = (event) => ready() && [...event.dataTransfer.types].some((type) => type === "Files" || type === "text/plain");
  const leave = () => {
    inside = 0;
    document.body.classList.remove("dropping");
  };
  addEventListener("dragenter", (event) => {
    inside++;
    if (wanted(event)) document.body.classList.add("dropping");
  });
  addEventListener("dragleave", () => {
    inside--;
    if (inside <= 0) leave();
  });
  addEventListener("dragover", (event) => {
    if (event.target.closest?.("input, textarea")) return;
    event.preventDefault(); // without this the browser would open the file
    event.dataTransfer.dropEffect = wanted(event) ? "copy" : "none";
  });
  addEventListener("drop", (event) => {
    leave();
    if (event.target.closest?.("input, textarea") && event.dataTransfer.files.length === 0) return;
    event.preventDefault();
    if (!ready()) return;
    const [dropped] = event.dataTransfer.files;
    if (dropped) file(dropped);
    else text(event.dataTransfer.getData("text/plain"));
  });
}

// One row ------------------------------------------------------------------------------------------------------------

const field = (j) => $(`value-${j}`);

/** A form with a field for each feature. */
export function rowForm(model) {
  $("row-fields").replaceChildren(...model.features.map((feature, j) =>
    el("div", { className: "row-field" },
      el("label", { htmlFor: `value-${j}` }, feature.name),
      inputOf(feature, j),
      el("span", { className: "hint", id: `hint-${j}` }, rangeOf(feature)))));
  sayOfRow("");
}

function inputOf(feature, j) {
  const shared = { id: `value-${j}`, "aria-describedby": `hint-${j}` };
  if (feature.kind === "number") {
    return el("input", { ...shared, type: "number", step: "any", min: String(feature.lower), max: String(feature.upper), autocomplete: "off" });
  }
  const none = el("option", { value: "" }, feature.missing ? "missing" : "choose");
  return el("select", shared, none, ...feature.levels.map((level) => el("option", { value: String(level) }, String(level))));
}

/** The values typed, as text; null, with the reason shown, if one is needed and is not there. */
export function typedRow(model) {
  for (const [j, feature] of model.features.entries()) {
    const input = field(j);
    const unread = input.validity.badInput;
    input.setAttribute("aria-invalid", String(unread || (input.value === "" && !feature.missing)));
    if (input.getAttribute("aria-invalid") === "false") continue;
    sayOfRow(unread ? `${feature.name} is not a number.` : `${feature.name} needs a value: the model has no cell for a missing one.`);
    input.focus();
    return null;
  }
  sayOfRow("");
  return model.features.map((_, j) => field(j).value);
}

function sayOfRow(text) {
  $("row-problem").textContent = text;
}
