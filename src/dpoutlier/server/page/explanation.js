// Why a point scores as it does: what each feature adds, and what would be usual instead.

import { explain } from "./api.js";
import { $, el, svg } from "./dom.js";
import { count, missingValue, short, shortRange } from "./words.js";

const SHOWN = 12;
const EMPTY = / 'Empty' is [^.]*\.$/; // the server explains a column that this page does not have

export class ExplanationPanel {
  /** `closed` is called with the row that was explained, `refused` with an error that is not about the row. */
  constructor(table, closed, refused) {
    this.table = table;
    this.closed = closed;
    this.refused = refused;
    this.row = null;
    this.said = null;
    this.panel = $("explanation");
    this.body = $("explanation-body");
    $("explanation-close").addEventListener("click", () => this.close());
    $("explanation-previous").addEventListener("click", () => this.#step(-1));
    $("explanation-next").addEventListener("click", () => this.#step(1));
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.row !== null && !document.querySelector("dialog[open]")) this.close();
    });
  }

  #step(by) {
    const next = this.table.beside(this.row, by);
    if (next === null) return;
    this.table.bring(next);
    this.open(this.result, next, { focus: false });
  }

  /** Asks the server, and shows what it says. */
  async open(result, row, { focus = true } = {}) {
    this.waiting?.abort();
    const waiting = (this.waiting = new AbortController());
    Object.assign(this, { result, row, said: null });
    this.panel.hidden = false;
    document.body.classList.add("explaining");
    $("explanation-title").textContent = `Row ${count(row + 1)}`;
    this.table.mark(row);
    $("explanation-previous").disabled = this.table.beside(row, -1) === null;
    $("explanation-next").disabled = this.table.beside(row, 1) === null;
    if (focus) $("explanation-title").focus({ preventScroll: true });
    this.panel.setAttribute("aria-busy", "true");
    try {
      const answer = await explain(result.model.id, result.sent.part(row, row + 1), waiting.signal);
      if (this.waiting === waiting) this.#show(answer);
    } catch (error) {
      if (error.name === "AbortError" || this.waiting !== waiting) return;
      const missing = error.code === "missing-value";
      const words = missing ? `${missingValue(error, row)} Without it there is no score to explain.` : error.message;
      this.body.replaceChildren(el("p", { className: "field-problem" }, words));
      if (error.status === 401) this.refused(error);
    }
    if (this.waiting === waiting) this.panel.removeAttribute("aria-busy");
  }

  #show(answer) {
    const [found] = answer.explanations;
    this.said = { score: found.outlier_score, typical: answer.typical_score, place: el("p", { className: "verdict" }) };
    this.judge();
    const parts = [this.said.place];
    if (found.outside_bounds) {
      parts.push(el("p", { className: "aside" }, "A value lies outside the declared range. It was scored as if it lay on the bound."));
    }
    const rows = found.rows.map((row) => ({ ...row, ...this.#instead(row, answer.typical_score, found.reached) }));
    if (found.counterfactual && found.counterfactual !== "None") {
      const inFigures = (text, { instead, shown }) => (instead ? text.replace(`${instead} instead of`, () => `${shown} instead of`) : text);
      parts.push(el("p", { className: "instead" }, sentence(rows.reduce(inFigures, found.counterfactual))));
    }
    const list = el("ol", { className: "reasons" });
    const scale = scaleOf(rows.map((row) => row.adds));
    const items = rows.map((row) => reason(row, scale));
    list.append(...items.slice(0, SHOWN));
    parts.push(el("h3", {}, "What each feature adds"), list);
    if (items.length > SHOWN) {
      const more = el("button", { type: "button", className: "quiet" }, `Show all ${items.length} features`);
      more.addEventListener("click", () => {
        list.append(...items.slice(SHOWN));
        more.remove();
      });
      parts.push(more);
    }
    parts.push(el("p", { className: "note" }, found.note.replace(EMPTY, "")));
    this.body.replaceChildren(...parts);
  }

  /** The range as it is shown, and whether it would be usual, or only less unusual than any other. */
  #instead({ feature, value, instead, then }, typical, reached) {
    const numeric = this.result.model.features.find(({ name }) => name === feature)?.kind === "number";
    const above = then ? Number(then) > Number(typical.toPrecision(4)) : reached === false; // `then` has four figures
    return { shown: numeric ? shortRange(instead, parseFloat(value)) : instead, usual: !above };
  }

  /** Says on which side of the threshold the score is; the threshold may move while the panel is open. */
  judge() {
    if (this.said === null) return;
    const { score, typical, place } = this.said;
    const { threshold } = this.result;
    const above = score > threshold;
    place.replaceChildren(
      el("strong", { className: above ? "outlying" : "" }, short(score)),
      el("span", {}, `${above ? "above" : "not above"} the threshold ${short(threshold)}. A typical row has ${short(typical)}.`));
  }

  close({ back = true } = {}) {
    if (this.row === null) return;
    this.waiting?.abort();
    const { row } = this;
    this.row = null;
    this.panel.hidden = true;
    document.body.classList.remove("explaining");
    this.body.replaceChildren();
    this.said = null;
    this.table.mark(null);
    if (back) this.closed(row);
  }
}

/** From values to places in a drawing 100 wide, such that zero is in it. */
function scaleOf(values) {
  const low = Math.min(0, ...values);
  const high = Math.max(0, ...values);
  const span = high - low || 1;
  return (value) => (100 * (value - low)) / span;
}

function reason(row, scale) {
  const zero = scale(0);
  const end = scale(row.adds);
  const drawing = svg("svg", { class: "reason-bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "track", width: 100, height: 8 }),
    svg("rect", { class: row.adds < 0 ? "less" : "more", x: Math.min(zero, end).toFixed(2), width: Math.abs(end - zero).toFixed(2), height: 8 }));
  const instead = row.instead ? `${row.usual ? "usual:" : "lowest at"} ${row.shown}${row.then ? `, score then ${row.then}` : ""}` : "";
  return el("li", {},
    el("div", { className: "reason-line" },
      el("span", { className: "reason-feature" }, row.feature),
      el("span", { className: "reason-value" }, row.value),
      el("span", { className: "reason-adds" }, `${row.adds < 0 ? "−" : "+"}${Math.abs(row.adds).toFixed(3)}`)),
    drawing,
    ...(instead ? [el("p", { className: "reason-instead" }, instead)] : []));
}

const sentence = (text) => (/[.!?]$/.test(text) ? text : `${text}.`);
