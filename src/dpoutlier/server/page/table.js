// The points as a table of pages, sorted by any column.

import { $, el } from "./dom.js";
import { bar, unseen } from "./histogram.js";
import { byColumn, byNumber } from "./result.js";
import { count, exact, short } from "./words.js";

const PAGE = 100;

export class Table {
  /** `chosen` is called with the row to explain. */
  constructor(chosen) {
    this.chosen = chosen;
    this.result = null;
    this.body = $("table-body");
    this.body.addEventListener("click", (event) => {
      const line = event.target.closest("tr");
      if (line && String(getSelection()) === "") this.#choose(Number(line.dataset.row));
    });
    this.body.addEventListener("keydown", (event) => this.#key(event));
    const turns = { first: () => 0, previous: () => this.page - 1, next: () => this.page + 1, last: () => this.pages - 1 };
    for (const [name, to] of Object.entries(turns)) $(`page-${name}`).addEventListener("click", () => this.turn(to()));
  }

  show(result) {
    this.result = result;
    this.sorting = { column: "score", descending: true };
    this.order = result.order;
    this.current = null;
    this.marked = null;
    const finite = result.sorted.filter(Number.isFinite);
    [this.low, this.high] = [Math.min(0, finite[0] ?? 0), finite[finite.length - 1] ?? 1];
    this.#header();
    this.turn(0);
  }

  get pages() {
    return Math.ceil(this.order.length / PAGE);
  }

  // Sorting ----------------------------------------------------------------------------------------------------------

  #header() {
    const own = [
      ["rank", "Rank"], ["row", "Row"], ["score", "Score"], ["outside", "Bounds"], ["prediction", "Prediction"],
      ...(this.result.tests ? [["p", "p-value"]] : []),
    ].map(([key, text]) => this.#heading(key, text, "own"));
    const { points, sent } = this.result;
    const given = points.header.map((name, j) => this.#heading(j, name, sent.columns.includes(j) ? "feature" : "other"));
    $("table-header").replaceChildren(...own, ...given);
    this.#sorted();
  }

  #heading(key, text, className) {
    const button = el("button", { type: "button", className: "sort" }, text === "" ? unseen("column without a name") : text);
    button.addEventListener("click", () => this.#sortBy(key));
    const heading = el("th", { scope: "col", className }, button);
    heading.dataset.key = String(key);
    return heading;
  }

  #sortBy(column) {
    const again = this.sorting.column === column;
    const descending = again ? !this.sorting.descending : ["score", "outside"].includes(column);
    this.sorting = { column, descending };
    this.order = this.#orderBy(column, descending);
    this.#sorted();
    this.turn(0);
  }

  #orderBy(column, descending) {
    const { result } = this;
    if (column === "score") return descending ? result.order : byNumber(result.scores.map((s) => (Number.isNaN(s) ? Infinity : s)), false);
    if (column === "rank") return descending ? result.order.slice().reverse() : result.order;
    if (column === "row") return byNumber(result.rank.map((_, row) => row), descending);
    if (column === "outside") return byNumber(result.outside, descending);
    if (column === "prediction") {
      const place = (row) => ({ "-1": 0, 1: 1 })[result.prediction(row)] ?? 2;
      return byNumber(Array.from(result.scores, (_, row) => place(row)), descending);
    }
    if (column === "p") return byNumber(result.tests.p.map((p) => (Number.isNaN(p) ? (descending ? -1 : 2) : p)), descending);
    return byColumn(result.points.column(column), descending);
  }

  #sorted() {
    const { column, descending } = this.sorting;
    for (const heading of $("table-header").children) {
      if (heading.dataset.key === String(column)) heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else heading.removeAttribute("aria-sort");
    }
    const name = typeof column === "number" ? this.result.points.header[column] : column;
    $("table-title").textContent = column === "score" && descending ? "Most outlying first" : `Sorted by ${name}`;
  }

  // Pages ------------------------------------------------------------------------------------------------------------

  turn(page) {
    this.page = Math.min(Math.max(page, 0), this.pages - 1);
    const rows = this.order.slice(this.page * PAGE, (this.page + 1) * PAGE);
    this.lines = Array.from(rows, (row) => this.#line(row));
    this.body.replaceChildren(...this.lines);
    this.body.closest(".table-box").scrollTop = 0;
    this.current = rows.includes(this.current) ? this.current : rows[0];
    this.#reachable();
    this.mark(this.marked);
    const first = this.page * PAGE + 1;
    $("page-place").textContent = `${count(first)} to ${count(first + rows.length - 1)} of ${count(this.order.length)}`;
    $("page-first").disabled = $("page-previous").disabled = this.page === 0;
    $("page-next").disabled = $("page-last").disabled = this.page === this.pages - 1;
    $("pages").hidden = this.pages === 1;
  }

  #line(row) {
    const { result } = this;
    const score = result.scores[row];
    const known = !Number.isNaN(score);
    const opener = el("button", { type: "button", className: "opener", tabIndex: -1, "aria-label": `Explain row ${count(row + 1)}` }, count(row + 1));
    const line = el("tr", {},
      el("td", { className: "figure" }, known ? count(result.rank[row]) : ""),
      el("th", { scope: "row", className: "figure" }, opener),
      el("td", { className: "score", title: known ? exact(score) : "" },
        ...(known ? [bar((score - this.low) / (this.high - this.low || 1), "score-bar"), el("span", {}, short(score))] : [el("span", { className: "muted" }, "no score")])),
      el("td", {}, result.outside[row] ? el("span", { className: "tag warn" }, "outside") : ""),
      el("td", { className: "prediction" }),
      ...(result.tests ? [el("td", { className: "p-value", title: known ? exact(result.tests.p[row]) : "" },
        el("span", {}, known ? short(result.tests.p[row]) : ""), el("span", { className: "tag warn", hidden: true }, "alarm"))] : []),
      ...result.points.row(row).map((value) => el("td", { className: "value" }, value)),
    );
    line.dataset.row = String(row);
    this.#predict(line, row);
    this.#flag(line, row);
    return line;
  }

  #predict(line, row) {
    const prediction = this.result.prediction(row);
    if (line.dataset.prediction === String(prediction)) return;
    line.dataset.prediction = String(prediction);
    line.querySelector(".prediction").textContent = { "-1": "outlier", 1: "inlier" }[prediction] ?? "";
  }

  #flag(line, row) {
    if (this.result.tests) line.querySelector(".p-value .tag").hidden = !this.result.tests.alarm(row);
  }

  /** Predictions and alarms as they are now. */
  update() {
    for (const line of this.lines) {
      this.#predict(line, Number(line.dataset.row));
      this.#flag(line, Number(line.dataset.row));
    }
  }

  // Rows -------------------------------------------------------------------------------------------------------------

  #openers() {
    return this.lines.map((line) => line.querySelector(".opener"));
  }

  #reachable() {
    for (const line of this.lines) line.querySelector(".opener").tabIndex = Number(line.dataset.row) === this.current ? 0 : -1;
  }

  #choose(row) {
    this.current = row;
    this.#reachable();
    this.chosen(row);
  }

  #key(event) {
    const openers = this.#openers();
    const at = openers.indexOf(event.target);
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: openers.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    this.current = Number(this.lines[Math.min(Math.max(to, 0), openers.length - 1)].dataset.row);
    this.focus(this.current);
  }

  /** Focus on a row, wherever in the order it is. */
  focus(row) {
    this.bring(row);
    this.lines.find((line) => Number(line.dataset.row) === row)?.querySelector(".opener").focus();
  }

  /** Turns to the page that has the row, and scrolls to it inside the table's box. */
  bring(row) {
    const page = Math.floor(this.order.indexOf(row) / PAGE);
    this.current = row;
    if (page !== this.page) this.turn(page);
    this.#reachable();
    const line = this.lines.find((one) => Number(one.dataset.row) === row);
    const box = this.body.closest(".table-box");
    const head = $("table-header").offsetHeight;
    const last = line.offsetTop + line.offsetHeight - box.clientHeight;
    box.scrollTop = Math.min(Math.max(box.scrollTop, last), line.offsetTop - head);
  }

  /** The row before or after another, or null. */
  beside(row, step) {
    return this.order[this.order.indexOf(row) + step] ?? null;
  }

  /** Shows which row is explained. */
  mark(row) {
    this.marked = row;
    for (const line of this.lines) line.classList.toggle("explained", Number(line.dataset.row) === row);
  }
}
