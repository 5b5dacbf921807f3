// What was found: scores, their order, and the threshold as it is set. Everything here is worked out in the page.

import { number } from "./words.js";

export class Result {
  constructor(model, points, sent, { scores, outside, threshold }) {
    Object.assign(this, { model, points, sent, scores, outside });
    this.sorted = scores.filter((score) => !Number.isNaN(score)).sort(); // typed arrays sort by number
    this.order = byScore(scores);
    this.rank = new Uint32Array(scores.length);
    this.order.forEach((row, place) => (this.rank[row] = place + 1));
    this.ownThreshold = threshold;
    this.start = Number.isNaN(threshold) ? this.percentile(0.95) : threshold;
    this.threshold = this.start;
    this.tests = model.p_values ? new Tests(model.p_values, this.scores) : null;
  }

  /** The smallest score that at least this share of the scores does not exceed. */
  percentile(share) {
    return this.sorted[Math.max(0, Math.ceil(share * this.sorted.length) - 1)] ?? 0;
  }

  get unscored() {
    return this.scores.length - this.sorted.length;
  }

  get outsiders() {
    return this.outside.reduce((sum, one) => sum + one, 0);
  }

  /** How many scores are above a threshold. A tie is no outlier. */
  above(threshold = this.threshold) {
    let [low, high] = [0, this.sorted.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.sorted[middle] > threshold) high = middle;
      else low = middle + 1;
    }
    return this.sorted.length - low;
  }

  /** -1 for outliers, 1 for others, NaN for points without a score. */
  prediction(row) {
    const score = this.scores[row];
    return Number.isNaN(score) ? NaN : score > this.threshold ? -1 : 1;
  }
}

/** P-values, and alarms by Benjamini and Hochberg's procedure, as the library has them. Points without a score have none. */
export class Tests {
  constructor({ levels, values }, scores) {
    const ends = levels.map(number);
    this.values = values;
    this.p = scores.map((score) => (Number.isNaN(score) ? NaN : values[binOf(score, ends)]));
    this.sorted = this.p.filter((value) => !Number.isNaN(value)).sort();
    this.smallest = Math.min(...values);
    this.cutoff = -1;
  }

  /** Sets the false-discovery rate. */
  aim(fdr) {
    const { sorted } = this;
    let last = sorted.length;
    while (last > 0 && !(sorted[last - 1] <= (fdr * last) / sorted.length)) last--;
    Object.assign(this, { fdr, cutoff: last > 0 ? sorted[last - 1] : -1, flagged: last });
  }

  /** Whether a point is flagged. */
  alarm(row) {
    return this.p[row] <= this.cutoff;
  }

  /** Fewer points than this are never flagged together. */
  get fewest() {
    return Math.ceil((this.smallest * this.sorted.length) / this.fdr);
  }
}

/** Bin i holds the scores above level i - 1 and up to level i; the last bin those above every level too. */
function binOf(score, levels) {
  let [low, high] = [0, levels.length - 1];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (levels[middle] >= score) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Rows from the largest score to the smallest, of equal ones the first first; rows without a score come last. */
function byScore(scores) {
  const order = new Uint32Array(scores.length).map((_, i) => i);
  const value = (row) => (Number.isNaN(scores[row]) ? -Infinity : scores[row]);
  return order.sort((a, b) => compare(value(b), value(a)) || Number.isNaN(scores[a]) - Number.isNaN(scores[b]) || a - b);
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** The rows in the order of a column's texts: numbers by size if all are numbers, empty ones last in both directions. */
export function byColumn(values, descending) {
  const order = new Uint32Array(values.length).map((_, i) => i);
  const sign = descending ? -1 : 1;
  const empty = values.map((value) => value.trim() === "");
  const numbers = values.map(Number);
  const numeric = numbers.every((value, i) => empty[i] || !Number.isNaN(value));
  const words = new Intl.Collator("en", { numeric: true });
  const difference = numeric ? (a, b) => compare(numbers[a], numbers[b]) : (a, b) => words.compare(values[a], values[b]);
  return order.sort((a, b) => empty[a] - empty[b] || (empty[a] ? 0 : sign * difference(a, b)) || a - b);
}

/** The rows in the order of numbers. */
export function byNumber(values, descending) {
  const order = new Uint32Array(values.length).map((_, i) => i);
  const sign = descending ? -1 : 1;
  return order.sort((a, b) => sign * compare(values[a], values[b]) || a - b);
}
