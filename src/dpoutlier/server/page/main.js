// The flow: a key, a model, points, a result.

import { canBeKey, hasKey, modelDetail, models, ServerProblem, useKey } from "./api.js";
import { $, el } from "./dom.js";
import { download } from "./download.js";
import { ExplanationPanel } from "./explanation.js";
import { giving, rowForm, typedRow } from "./giving.js";
import { Histogram } from "./histogram.js";
import { showModel, showWarning, statementDialog } from "./model.js";
import { pointsOf, pointsOfRows, pointsOfText, PointsProblem } from "./points.js";
import { Result } from "./result.js";
import { scoreAll, thresholdFor } from "./scoring.js";
import { Sent } from "./sent.js";
import { Table } from "./table.js";
import { themeButton } from "./theme.js";
import { count, many, percent, short } from "./words.js";

const narrow = matchMedia("(max-width: 959px)"); // one column, as in page.css
/** `given` are the last points from a file or the clipboard, `points` those with a result. */
const state = { model: null, given: null, points: null, typed: null, result: null, running: null };
const table = new Table((row) => panel.open(state.result, row));
const panel = new ExplanationPanel(table, (row) => table.focus(row), showError);
const histogram = new Histogram($("histogram"), (value) => moveThreshold(value, "You moved it."));

// Words for people -----------------------------------------------------------------------------------------------------

function say(text) {
  $("status").textContent = text;
}

/** Shows what went wrong; `unscored` is what to do if points may stay without a score. */
function showError(error, unscored = null) {
  if (error.name === "AbortError") return;
  if (error.status === 401) {
    askForKey(error.message);
    return;
  }
  const expected = error instanceof ServerProblem || error instanceof PointsProblem;
  $("problem-text").textContent = expected ? error.message : `This page failed: ${error.message}`;
  $("leave-unscored").hidden = !(unscored && error.code === "missing-value");
  $("leave-unscored").onclick = unscored;
  $("problem").hidden = false;
  $("problem").scrollIntoView({ block: "nearest" });
}

function hideError() {
  $("problem").hidden = true;
  $("problem-text").textContent = "";
}

// Key and models -------------------------------------------------------------------------------------------------------

function askForKey(message) {
  $("work").hidden = true;
  $("key-view").hidden = false;
  $("key-problem").textContent = message;
  $("key").setAttribute("aria-invalid", String(message !== ""));
  $("key").focus();
}

async function enterKey(event) {
  event.preventDefault();
  const text = $("key").value.trim();
  if (!canBeKey(text)) {
    askForKey(text === "" ? "Type or paste your key." : "A key has letters, figures, - and _ only, and begins with dpo_.");
    return;
  }
  useKey(text);
  await openModels();
}

async function openModels() {
  try {
    showModels(await models());
  } catch (error) {
    const first = error.status === 401 && !hasKey();
    if (error.status === 401) useKey(null);
    if (first) askForKey("");
    else showError(error);
  }
}

function showModels(found) {
  $("key").value = "";
  $("key-problem").textContent = "";
  $("forget-key").hidden = !hasKey();
  if (found.length === 0) {
    showError(new ServerProblem("There is no model that this key may use. Ask the custodian."));
    return;
  }
  hideError();
  $("key-view").hidden = true;
  $("work").hidden = false;
  $("model-choice").hidden = found.length === 1;
  $("model-name").classList.toggle("unseen", found.length > 1);
  $("model-select").replaceChildren(...found.map(({ id }) => el("option", { value: id }, id)));
  const known = found.some(({ id }) => id === state.model?.id);
  $("model-select").value = known ? state.model.id : found[0].id;
  if (!known) chooseModel();
}

async function chooseModel() {
  hideError();
  state.running?.abort(); // another model's columns
  const id = $("model-select").value;
  const current = () => $("model-select").value === id; // else another was chosen meanwhile
  try {
    const found = await modelDetail(id);
    if (!current()) return;
    state.model = found;
  } catch (error) {
    if (current()) showError(error);
    return;
  }
  showModel(state.model);
  rowForm(state.model);
  state.typed = null; // another model's row
  forgetResult();
  if (state.given !== null) await run(state.given); // the same file by another model
}

// Points ---------------------------------------------------------------------------------------------------------------

const names = () => state.model.features.map((feature) => feature.name);

async function giveFile(file) {
  try {
    const bytes = new Uint8Array(await file.arrayBuffer());
    state.typed = null;
    state.given = pointsOf(bytes, file.name, names());
    await run(state.given);
  } catch (error) {
    if (!(error instanceof PointsProblem)) error = new PointsProblem(`${file.name} cannot be read: ${error.message}`);
    forgetResult();
    showError(error);
  }
}

async function giveText(text) {
  try {
    state.typed = null;
    state.given = pointsOfText(text, "pasted rows", names());
    await run(state.given);
  } catch (error) {
    forgetResult();
    showError(error);
  }
}

async function giveRow() {
  const row = typedRow(state.model);
  if (row === null) return;
  const rows = [...(state.typed ?? []), row];
  if (await run(pointsOfRows(names(), rows, "typed rows"))) {
    Object.assign(state, { typed: rows, given: null });
    showPoints();
    panel.open(state.result, rows.length - 1);
  }
}

/** Scores points and shows the result; whether there is one. */
async function run(points, missing = "error") {
  state.running?.abort();
  const running = (state.running = new AbortController());
  const { model } = state;
  hideError();
  try {
    points.check(model);
    const sent = new Sent(points, model);
    const found = await scoreAll(model, sent, { missing, signal: running.signal, progress: showProgress });
    state.points = points;
    showResult(new Result(model, points, sent, found));
    return true;
  } catch (error) {
    if (error.name === "AbortError") {
      if (state.running === running) say("Cancelled.");
      return false;
    }
    if (error.status !== 401) forgetResult();
    showError(error, () => run(points, "null"));
    return false;
  } finally {
    if (state.running === running) {
      state.running = null;
      $("progress").hidden = true;
    }
  }
}

function showProgress(done, all, parts) {
  $("progress").hidden = false;
  $("progress-text").textContent = parts === 1 ? `Scoring ${many(all, "point")}` : `Scored ${count(done)} of ${many(all, "point")}`;
  if (parts === 1) $("progress-bar").removeAttribute("value");
  else Object.assign($("progress-bar"), { max: all, value: done });
}

/** The part where points are given is folded away once there is a result, but while rows are typed. */
function showPoints() {
  const { points, typed } = state;
  $("points-title").textContent = points === null ? "Points to score" : points.name;
  $("points-toggle").hidden = points === null;
  unfold(points === null || typed !== null);
  const remarks = points === null ? [] : [...points.remarks, ...stayed(state.result)];
  $("remarks").replaceChildren(...remarks.map((text) => el("li", {}, text)));
  $("remarks").hidden = remarks.length === 0;
}

/** What was not sent, if anything. */
function stayed({ points, sent }) {
  const n = points.header.length - sent.columns.length;
  return n === 0 ? [] : [`${many(n, "column")} that the model does not need stayed in this browser.`];
}

function unfold(open) {
  $("points-body").hidden = !open;
  $("points-toggle").setAttribute("aria-expanded", String(open));
}

// Result ---------------------------------------------------------------------------------------------------------------

function forgetResult() {
  Object.assign(state, { points: null, result: null });
  panel.close({ back: false });
  $("result").hidden = true;
  showPoints();
}

function showResult(result) {
  panel.close({ back: false });
  state.result = result;
  $("result").hidden = false;
  $("fpr-form").hidden = state.model.target_fpr === null;
  if (state.model.target_fpr !== null) $("fpr").value = String(Number((100 * state.model.target_fpr).toPrecision(6)));
  showWarning($("result-warning"), result.model);
  $("flagging").hidden = result.tests === null;
  histogram.show(result);
  table.show(result);
  flag();
  moveThreshold(result.start, originOf(result));
  showPoints();
  $("result-title").focus({ preventScroll: true });
  if (narrow.matches) $("result").scrollIntoView({ block: "start" });
  say($("summary").textContent);
}

function originOf(result) {
  if (Number.isNaN(result.ownThreshold)) return "The model has no threshold; this is the 95th percentile of the scores shown.";
  const rate = result.model.target_fpr;
  return rate === null ? "This is the model's own threshold." : `This is the model's own threshold, for a false-positive rate of ${percent(rate)}.`;
}

function moveThreshold(value, origin, { typing = false } = {}) {
  const { result } = state;
  result.threshold = value;
  histogram.update();
  table.update();
  panel.judge();
  showSummary(result);
  if (!typing) $("threshold").value = Number.isFinite(value) ? String(Number(value.toPrecision(6))) : "";
  $("threshold").placeholder = Number.isFinite(value) ? "" : short(value);
  $("threshold-reset").hidden = value === result.start;
  $("threshold-reset").textContent = `Back to ${short(result.start)}`;
  $("threshold-origin").textContent = origin;
}

function showSummary(result) {
  const above = result.above();
  const strong = (n, className) => el("strong", { className }, count(n));
  const parts = [
    [strong(result.scores.length, ""), result.scores.length === 1 ? " point" : " points"],
    [strong(above, "outlying"), ` above the threshold (${percent(above / (result.sorted.length || 1))})`],
    [strong(result.outsiders, ""), " outside the bounds"],
    ...(result.unscored ? [[strong(result.unscored, ""), " without a score"]] : []),
  ];
  $("summary").replaceChildren(...parts.flatMap((part, i) => (i ? [", ", el("span", {}, ...part)] : [el("span", {}, ...part)])));
}

/** Marks alarms at the false-discovery rate in its field; one that cannot be used changes nothing. */
function flag() {
  const tests = state.result?.tests;
  if (!tests) return;
  const fdr = $("fdr").valueAsNumber;
  const usable = fdr > 0 && fdr < 1;
  $("fdr").setAttribute("aria-invalid", String(!usable));
  if (usable) tests.aim(fdr);
  else if (tests.fdr === undefined) tests.aim(0.1);
  table.update();
  const said = [el("strong", { className: "outlying" }, count(tests.flagged)), ` flagged of ${many(tests.sorted.length, "point")}`];
  $("flagged").replaceChildren(...(usable ? [...said, whyNone(tests)] : ["The rate must be a number between 0 and 1."]));
}

function whyNone({ flagged, smallest, fdr, sorted, fewest }) {
  if (flagged > 0 || sorted.length === 0) return ".";
  const what = smallest > fdr ? "none ever is" : `fewer than ${count(fewest)} never are`;
  return `: ${what}, as ${short(smallest)} is the smallest p-value that this model gives. More rows times epsilon give smaller ones.`;
}

async function aimAt(event) {
  event.preventDefault();
  const { result } = state;
  hideError();
  try {
    const share = Number($("fpr").value) / 100;
    const value = await thresholdFor(result.model, result.sent, share);
    if (state.result === result) moveThreshold(value, `This is the model's threshold for a false-positive rate of ${percent(share)}.`);
  } catch (error) {
    showError(error);
  }
}

// Wiring ---------------------------------------------------------------------------------------------------------------

$("key-form").addEventListener("submit", enterKey);
$("key-show").addEventListener("click", () => {
  const shown = $("key").type === "password";
  $("key").type = shown ? "text" : "password";
  $("key-show").textContent = shown ? "Hide" : "Show";
  $("key-show").setAttribute("aria-pressed", String(shown));
});
$("forget-key").addEventListener("click", () => location.reload());
$("model-select").addEventListener("change", chooseModel);
$("problem-close").addEventListener("click", hideError);
$("points-toggle").addEventListener("click", () => unfold($("points-body").hidden));
$("cancel").addEventListener("click", () => state.running?.abort());
$("fpr-form").addEventListener("submit", aimAt);
$("threshold").addEventListener("input", () => {
  const value = $("threshold").valueAsNumber;
  if (Number.isFinite(value)) moveThreshold(value, "You moved it.", { typing: true });
});
$("threshold-reset").addEventListener("click", () => {
  moveThreshold(state.result.start, originOf(state.result));
  $("threshold").focus();
});
$("log-heights").addEventListener("change", () => {
  histogram.logarithmic = $("log-heights").checked;
  histogram.draw();
});
$("fdr").addEventListener("input", flag);
$("download").addEventListener("click", () => download(state.result));
giving({ file: giveFile, text: giveText, row: giveRow, ready: () => state.model !== null && !$("work").hidden });
statementDialog(() => state.model);
themeButton();
$("features").open = !narrow.matches;
openModels();
