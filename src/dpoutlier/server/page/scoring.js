// Points to scores, in as many requests as the server's limits ask for.

import { score, ServerProblem } from "./api.js";
import { $ } from "./dom.js";
import { PointsProblem } from "./points.js";
import { count, missingValue, number } from "./words.js";

/** Where to cut: [first, last) of each request. */
export function cuts(sent, { rows, bytes }) {
  const found = [];
  for (let first = 0; first < sent.length; ) {
    let last = first + 1;
    if (sent.sizeOf(first, last) > bytes) {
      throw new PointsProblem(`Row ${count(first + 1)} alone is larger than this server takes: ${count(bytes)} bytes.`);
    }
    while (last < sent.length && last - first < rows && sent.sizeOf(first, last + 1) <= bytes) last++;
    found.push([first, last]);
    first = last;
  }
  return found;
}

/** Scores of all points, NaN where there is none; `outside` is 1 where a value lies outside the bounds. */
export async function scoreAll(model, sent, { missing, signal, progress }) {
  const scores = new Float64Array(sent.length);
  const outside = new Uint8Array(sent.length);
  let [threshold, release] = [NaN, null];
  const parts = cuts(sent, model.limits);
  for (const [first, last] of parts) {
    progress(first, sent.length, parts.length);
    const answer = await part(model, sent, first, last, { missing, signal, alone: parts.length === 1 });
    if (answer.n !== last - first) {
      throw new ServerProblem(`The server counted ${count(answer.n)} rows where this page counted ${count(last - first)}.`);
    }
    if (release !== null && answer.release !== release) {
      throw new ServerProblem("The model was replaced while the points were scored. Score them once more.");
    }
    scores.set(answer.outlier_score.map(number), first);
    outside.set(answer.outside_bounds.map(Number), first);
    [threshold, release] = [number(answer.threshold), answer.release];
  }
  progress(sent.length, sent.length, parts.length);
  return { scores, outside, threshold, release };
}

async function part(model, sent, first, last, { missing, signal, alone }) {
  try {
    return await score(model.id, sent.part(first, last), { missing }, signal);
  } catch (error) {
    if (!(error instanceof ServerProblem) || error.status !== 400) throw error;
    if (error.code === "missing-value") {
      const remedy = `Fill or remove such rows, or press “${$("leave-unscored").textContent}”.`;
      throw new ServerProblem(`${missingValue(error, first)} ${remedy}`, error.status, error);
    }
    if (alone) throw error;
    const place = `In the part from row ${count(first + 1)} to ${count(last)}: `;
    throw new ServerProblem(place + error.message, error.status, error);
  }
}

/** The threshold that the model has for a false-positive rate; the server knows it, and any point may carry the question. */
export async function thresholdFor(model, sent, rate) {
  return number((await score(model.id, sent.part(0, 1), { missing: "null", target_fpr: rate })).threshold);
}
