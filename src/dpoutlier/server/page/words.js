// Numbers in words and figures.

const whole = new Intl.NumberFormat("en");

export const count = (n) => whole.format(n);

export const many = (n, one, more = `${one}s`) => `${count(n)} ${n === 1 ? one : more}`;

/** A score in few figures. */
export function short(value) {
  if (value === Infinity) return "∞";
  if (value === -Infinity) return "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(2).replace("-", "−");
  return String(Number(value.toPrecision(4))).replace("-", "−");
}

/** A share of a hundred. */
export function percent(share) {
  const value = 100 * share;
  return `${value === 0 ? 0 : Number(value.toPrecision(value < 1 ? 1 : 2))}\u00a0%`;
}

/** The number that the server means; it writes infinities as text. */
export function number(value) {
  if (value === "inf") return Infinity;
  if (value === "-inf") return -Infinity;
  return value === null ? NaN : Number(value);
}

/** A number as it reads back to the bit, also in Python. */
export function exact(value) {
  if (value === Infinity) return "inf";
  if (value === -Infinity) return "-inf";
  return Object.is(value, -0) ? "-0.0" : String(value);
}

/** What a point lacks, by the fields of the server's error, with the row counted from 1; `first` is the row of its point 0. */
export function missingValue({ row, column, value, must }, first) {
  const place = `Row ${count(first + row + 1)}`;
  return value === null ? `${place} has no value in ${column}.` : `${place} has ${value} in ${column}, which is not ${must}.`;
}

/** A range of numbers in few figures: as many as keep its ends apart, and a `value` outside it outside. */
export function shortRange(text, value = NaN) {
  const ends = /^(-?[\d.]+(?:e[+-]?\d+)?) to (-?[\d.]+(?:e[+-]?\d+)?)$/.exec(text);
  if (ends === null) return text;
  const [low, high] = ends.slice(1).map(Number);
  for (let figures = 4; figures < 10; figures++) {
    const [from, to] = [low, high].map((end) => Number(end.toPrecision(figures)));
    const seemsInside = (value < low || value > high) && value >= from && value <= to;
    if (from < to && !seemsInside) return `${from} to ${to}`;
  }
  return text;
}
