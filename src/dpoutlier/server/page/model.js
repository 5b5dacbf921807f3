// The model in use: what it is, what it promises, which features it knows.

import { $, el, offer } from "./dom.js";
import { number, percent, short } from "./words.js";

const KINDS = {
  DPForest: "random trees with noisy counts",
  DPGridKNN: "nearest neighbours on a noisy grid",
  DPMarginals: "noisy counts, feature by feature",
};

export function showModel(model) {
  $("model-name").textContent = model.id;
  showWarning($("model-warning"), model);
  document.title = `${model.id} – dpoutlier`;
  const tag = model.publishable ? ["tag good", "publishable"] : ["tag warn", "secret: stays with the custodian"];
  $("model-tags").replaceChildren(el("span", { className: tag[0] }, tag[1]));
  $("model-facts").replaceChildren(...facts(model).map(([name, text, more]) => el("div", {},
    el("dt", {}, name),
    el("dd", {}, el("span", { className: "fact" }, text), ...(more ? [el("span", { className: "more" }, more)] : [])))));
  $("feature-count").textContent = String(model.features.length);
  $("model-features").replaceChildren(...model.features.map((feature) =>
    el("li", {}, el("span", { className: "feature-name" }, feature.name), el("span", { className: "feature-range" }, rangeOf(feature)))));
}

/** First of all, whether the model's own threshold can be relied on. */
export function showWarning(place, model) {
  const found = model.false_alarms;
  place.hidden = (found ?? { trusted: true }).trusted;
  if (place.hidden) return;
  const why = found.upper === 0 ? "it lies above every score, so no point is ever beyond it" : `it may flag ${rangeIn(found)}`;
  place.replaceChildren(el("strong", {}, "The model’s threshold cannot be trusted"), `: ${why}.`);
}

const rangeIn = ({ lower, upper, level }) =>
  `${percent(lower)} to ${percent(upper)} of normal points (${percent(level)} confidence)`;

function falseAlarms(found) {
  if (!found) return [];
  const none = found.upper === 0;
  return [["False alarms", none ? "none" : `about ${percent(found.expected)}`, none ? "no score lies above the threshold" : rangeIn(found)]];
}

function facts(model) {
  const { unit } = model.statement ?? {};
  const threshold = number(model.threshold);
  const rate = model.target_fpr === null ? "" : `for a false-positive rate of ${percent(model.target_fpr)}`;
  return [
    ["Privacy", `ε = ${model.epsilon}`, [unit, model.neighbours].filter(Boolean).join(", ")],
    ["Detector", model.detector, KINDS[model.detector]],
    ["Threshold", Number.isNaN(threshold) ? "none" : short(threshold), rate],
    ...falseAlarms(model.false_alarms),
  ];
}

/** What a feature may be, in words. */
export function rangeOf(feature) {
  const missing = feature.missing ? ", or missing" : "";
  if (feature.kind === "number") return `${short(feature.lower)} to ${short(feature.upper)}${missing}`;
  const { levels } = feature;
  const shown = levels.slice(0, 8).join(feature.ordered ? " < " : ", ");
  return `${shown}${levels.length > 8 ? ` and ${levels.length - 8} more` : ""}${missing}`;
}

/** The statement, to read, to print and to keep. */
export function statementDialog(current) {
  const dialog = $("statement");
  $("statement-open").addEventListener("click", () => {
    $("statement-text").textContent = current().statement_text;
    dialog.showModal();
  });
  $("statement-close").addEventListener("click", () => dialog.close());
  $("statement-print").addEventListener("click", () => window.print());
  $("statement-download").addEventListener("click", () => {
    offer(new Blob([current().statement_text, "\n"], { type: "text/plain" }), `${current().id}-privacy-statement.txt`);
  });
}
