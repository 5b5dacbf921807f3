// How many points have which score, with the threshold as a handle: by pointer, by touch, by keyboard.

import { el, svg } from "./dom.js";
import { count, many, short } from "./words.js";

const MARGIN = { top: 30, right: 14, bottom: 26, left: 44 };

/** 1, 2 or 5 times a power of ten, at least the value. */
function niceStep(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((part) => part * power).find((step) => step >= value * 0.999) ?? value;
}

/** Multiples of a nice step from `low` to `high`, about `n` of them. */
function ticks(low, high, n) {
  const step = niceStep((high - low) / n);
  const first = Math.ceil(low / step - 1e-9);
  const found = [];
  for (let i = first; i * step <= high + step * 1e-9; i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}

export class Histogram {
  /** `moved` is called with every new threshold. */
  constructor(place, moved) {
    this.place = place;
    this.moved = moved;
    this.logarithmic = false;
    this.result = null;
    this.handle = svg("g", {
      role: "slider", tabindex: "0", class: "handle", "aria-label": "Threshold on the outlier score", "aria-orientation": "horizontal",
    });
    this.drawing = svg("svg", { class: "histogram-drawing" });
    this.drawing.addEventListener("pointerdown", (event) => this.#grab(event));
    this.handle.addEventListener("keydown", (event) => this.#key(event));
    this.place.replaceChildren(this.drawing);
    new ResizeObserver(() => this.draw()).observe(this.place);
  }

  show(result) {
    this.result = result;
    const { sorted, start } = result;
    let [low, high] = sorted.length ? [sorted[0], sorted[sorted.length - 1]] : [0, 1];
    if (Number.isFinite(start)) [low, high] = [Math.min(low, start), Math.max(high, start)];
    if (low === high) [low, high] = [Math.min(0, low), high > 0 ? high * 1.25 : Math.max(0, high) + 1];
    [this.low, this.high] = [low, high];
    this.step = niceStep((high - low) / 150);
    this.draw();
  }

  draw() {
    const width = this.place.clientWidth;
    if (this.result === null || width === 0) return;
    const height = width < 520 ? 200 : 240;
    Object.assign(this, { width, height });
    this.plot = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
    const counts = this.#counts(Math.min(64, Math.max(8, Math.round(Math.sqrt(this.result.sorted.length))), Math.floor(width / 8)));
    const top = Math.max(1, ...counts);
    const scale = this.logarithmic ? (n) => Math.log1p(n) / Math.log1p(top) : (n) => n / top;
    const y = (n) => this.plot.bottom - scale(n) * (this.plot.bottom - this.plot.top - 8);
    const bars = counts.map((n, i) => this.#bar(i, counts.length, n, y)).join("");
    this.clip = svg("rect", { y: 0, height });
    this.drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.drawing.setAttribute("height", height);
    const said = `Histogram of ${many(this.result.sorted.length, "score")} from ${short(this.low)} to ${short(this.high)}`;
    this.drawing.replaceChildren(
      svg("title", {}, said),
      svg("clipPath", { id: "above" }, this.clip),
      ...this.#heights(top, y),
      svg("path", { class: "bars", d: bars }),
      svg("path", { class: "bars outlying", d: bars, "clip-path": "url(#above)" }),
      svg("line", { class: "axis", x1: this.plot.left, x2: this.plot.right, y1: this.plot.bottom, y2: this.plot.bottom }),
      ...this.#scores(),
      this.handle,
    );
    this.update();
  }

  #counts(n) {
    const counts = new Array(n).fill(0);
    for (const score of this.result.sorted) counts[Math.min(n - 1, Math.floor((n * (score - this.low)) / (this.high - this.low)))]++;
    return counts;
  }

  #bar(i, n, size, y) {
    if (size === 0) return "";
    const span = (this.plot.right - this.plot.left) / n;
    const left = this.plot.left + i * span + (span > 4 ? 0.75 : 0);
    const right = this.plot.left + (i + 1) * span - (span > 4 ? 0.75 : 0);
    const top = Math.min(y(size), this.plot.bottom - 2.5); // one point must be seen
    return `M${left.toFixed(2)} ${this.plot.bottom}V${top.toFixed(2)}H${right.toFixed(2)}V${this.plot.bottom}Z`;
  }

  #heights(top, y) {
    const powers = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000].filter((n) => n <= top);
    const at = this.logarithmic ? powers : ticks(0, top, 3).filter((n) => n > 0 && Number.isInteger(n));
    return at.flatMap((n) => [
      svg("line", { class: "grid", x1: this.plot.left, x2: this.plot.right, y1: y(n), y2: y(n) }),
      svg("text", { class: "tick", x: this.plot.left - 8, y: y(n) + 4, "text-anchor": "end" }, count(n)),
    ]);
  }

  #scores() {
    return ticks(this.low, this.high, Math.max(4, Math.floor(this.width / 110))).map((value) =>
      svg("text", { class: "tick", x: this.x(value), y: this.plot.bottom + 18, "text-anchor": "middle" }, short(value)),
    );
  }

  x(value) {
    const share = Math.min(1, Math.max(0, (value - this.low) / (this.high - this.low)));
    return this.plot.left + share * (this.plot.right - this.plot.left);
  }

  /** Puts the handle where the threshold is. */
  update() {
    if (!this.plot) return;
    const { threshold, sorted } = this.result;
    const x = this.x(threshold);
    const above = this.result.above();
    this.clip.setAttribute("x", threshold < this.low ? 0 : x);
    this.clip.setAttribute("width", Math.max(0, this.width - x));
    const label = short(threshold);
    const half = Math.max(20, 4.3 * label.length + 9);
    const middle = Math.min(this.width - half - 1, Math.max(half + 1, x));
    this.handle.replaceChildren(
      svg("rect", { class: "reach", x: x - 18, width: 36, y: 0, height: this.height }),
      svg("line", { class: "line", x1: x, x2: x, y1: MARGIN.top - 6, y2: this.plot.bottom }),
      svg("rect", { class: "pill", x: middle - half, width: 2 * half, y: 1, height: 23, rx: 11.5 }),
      svg("text", { class: "pill-text", x: middle, y: 17, "text-anchor": "middle" }, label),
      svg("circle", { class: "grip", cx: x, cy: this.plot.bottom, r: 6.5 }),
    );
    const said = { now: Math.min(this.high, Math.max(this.low, threshold)), min: this.low, max: this.high };
    for (const [name, value] of Object.entries(said)) this.handle.setAttribute(`aria-value${name}`, String(value));
    this.handle.setAttribute("aria-valuetext", `${label}: ${count(above)} of ${many(sorted.length, "point")} above`);
  }

  #grab(event) {
    if (event.button !== 0 || this.result === null) return;
    event.preventDefault();
    this.handle.focus({ preventScroll: true });
    this.drawing.setPointerCapture(event.pointerId);
    this.drawing.classList.add("held");
    const follow = (moving) => {
      const share = (moving.clientX - this.drawing.getBoundingClientRect().left - this.plot.left) / (this.plot.right - this.plot.left);
      this.#to(this.low + share * (this.high - this.low));
    };
    const drop = () => {
      this.drawing.classList.remove("held");
      this.drawing.removeEventListener("pointermove", follow);
    };
    this.drawing.addEventListener("pointermove", follow);
    for (const end of ["pointerup", "pointercancel"]) this.drawing.addEventListener(end, drop, { once: true });
    follow(event);
  }

  #key(event) {
    const now = Math.min(this.high, Math.max(this.low, this.result.threshold));
    const to = {
      ArrowLeft: now - this.step, ArrowDown: now - this.step, ArrowRight: now + this.step, ArrowUp: now + this.step,
      PageDown: now - 10 * this.step, PageUp: now + 10 * this.step, Home: this.low, End: this.high,
    }[event.key];
    if (to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    this.#to(to);
  }

  /** Moves the threshold, to few figures but at the ends, which are exact: at the upper one no point is above. */
  #to(value) {
    if (value <= this.low || value >= this.high) {
      this.moved(value <= this.low ? this.low : this.high);
      return;
    }
    const fine = this.step / 10;
    const digits = Math.min(100, Math.max(0, -Math.floor(Math.log10(fine) + 1e-9)));
    const rounded = Number((Math.round(value / fine) * fine).toFixed(digits));
    this.moved(Math.min(this.high, Math.max(this.low, rounded)));
  }
}

/** A bar beside a number: what share of the longest it is. */
export function bar(share, className) {
  const length = Number.isFinite(share) ? Math.min(1, Math.max(0, share)) * 100 : 0;
  return svg("svg", { class: `bar ${className}`, viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "track", width: 100, height: 6 }), svg("rect", { class: "fill", width: length.toFixed(2), height: 6 }));
}

export const unseen = (text) => el("span", { className: "unseen" }, text);
