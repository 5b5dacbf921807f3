// All points with their scores as a file, in the order in which they came.

import { recordOf } from "./csv.js";
import { offer } from "./dom.js";
import { exact } from "./words.js";

const ADDED = ["outlier_score", "outside_bounds", "prediction"];
const TESTED = ["p_value", "alarm"];

/** Names of the columns to add; one that the points have already gets a number. */
export function addedNames({ points: { header }, tests }) {
  return [...ADDED, ...(tests ? TESTED : [])].map((name) => {
    let free = name;
    for (let i = 2; header.includes(free); i++) free = `${name}_${i}`;
    return free;
  });
}

/** The file's lines. Values stand as they came; points without a score have empty fields. */
export function* lines(result) {
  const { points, scores, outside, tests } = result;
  const added = addedNames(result);
  yield `${recordOf([...points.header, ...added])}\r\n`;
  for (let row = 0; row < points.length; row++) {
    const known = !Number.isNaN(scores[row]);
    const told = known ? [exact(scores[row]), outside[row] ? "true" : "false", String(result.prediction(row))] : added.map(() => "");
    if (known && tests) told.push(exact(tests.p[row]), tests.alarm(row) ? "true" : "false");
    yield `${recordOf([...points.row(row), ...told])}\r\n`;
  }
}

export function download(result) {
  const mark = result.points.marked ? ["\ufeff"] : [];
  const name = `${result.points.name.replace(/\.[A-Za-z0-9]{1,5}$/, "").replace(/[^\p{L}\p{N}._ -]/gu, "_")}-scored.csv`;
  offer(new Blob([...mark, ...lines(result)], { type: "text/csv" }), name);
}
