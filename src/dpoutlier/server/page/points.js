// Points to score: CSV in UTF-8, from a file, from the clipboard or from a form.

import { fieldsOf, findRecords, recordOf } from "./csv.js";
import { many } from "./words.js";

/** What is wrong with points, in words for people. */
export class PointsProblem extends Error {}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();

/** A table of text. The bytes are kept as they came, and stay here; rows are read when they are shown. */
export class Points {
  constructor(bytes, name, remarks = []) {
    this.name = name;
    this.remarks = remarks;
    this.marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf; // a byte order mark
    const plain = this.marked ? bytes.subarray(3) : bytes;
    const { starts, ends, lines, sizes } = findRecords(plain);
    if (plain.length === 0) throw new PointsProblem(`${name} is empty. The first line must name the columns.`);
    if (sizes[0] === 0) throw new PointsProblem(`The first line of ${name} is empty. It must name the columns.`);
    this.plain = plain;
    this.header = fieldsOf(decoder.decode(plain.subarray(starts[0], ends[0])));
    const width = this.header.length;
    this.starts = [];
    this.ends = [];
    for (let i = 1; i < starts.length; i++) {
      if (sizes[i] === 0 && width > 1) continue; // an empty line
      if (Math.max(sizes[i], 1) !== width) {
        throw new PointsProblem(`Line ${lines[i]} of ${name} has ${many(sizes[i], "value")}, but the header names ${many(width, "column")}.`);
      }
      this.starts.push(starts[i]);
      this.ends.push(ends[i]);
    }
    if (this.starts.length === 0) throw new PointsProblem(`${name} has a header, but no rows below it.`);
    this.known = new Map(); // columns that were read as a whole
  }

  get length() {
    return this.starts.length;
  }

  /** The fields of a row, counted from 0. */
  row(i) {
    return fieldsOf(decoder.decode(this.plain.subarray(this.starts[i], this.ends[i])));
  }

  /** All values of a column. */
  column(j) {
    if (!this.known.has(j)) this.known.set(j, Array.from({ length: this.length }, (_, i) => this.row(i)[j]));
    return this.known.get(j);
  }

  /** Says what is wrong with the columns, before anything is sent. */
  check(model) {
    if (!model.named) {
      const wanted = model.features.length;
      const found = this.header.filter((name) => name !== model.person).length;
      if (found === wanted) return;
      throw new PointsProblem(`${this.name} has ${many(found, "column")}. This model has no feature names. It needs exactly ${many(wanted, "column")}, in its order.`);
    }
    const names = model.features.map((feature) => feature.name);
    const doubled = names.find((name) => this.header.indexOf(name) !== this.header.lastIndexOf(name));
    if (doubled !== undefined) throw new PointsProblem(`${this.name} has two columns named “${doubled}”. Give each a name of its own.`);
    const absent = names.filter((name) => !this.header.includes(name));
    if (absent.length === 0) return;
    throw new PointsProblem(`${this.name} has no column ${list(absent)}, which the model needs. Its columns are ${list(this.header)}.`);
  }
}

/** Names between quotation marks; of very many the first. */
function list(names) {
  const shown = names.slice(0, 12).map((name) => `“${name}”`).join(", ");
  return names.length > 12 ? `${shown} and ${names.length - 12} more` : shown;
}

/** Points from the bytes of a file. `wanted` are the names of the model's features: they tell which mark separates values. */
export function pointsOf(given, name, wanted) {
  const remarks = [];
  let bytes = inUtf8(given, name, remarks);
  const delimiter = delimiterOf(bytes, wanted);
  if (delimiter !== ",") {
    remarks.push(`Values in ${name} are separated by ${delimiter === "\t" ? "tabs" : "semicolons"}; they are sent with commas.`);
    bytes = withCommas(bytes, delimiter);
  }
  return new Points(bytes, name, remarks);
}

export const pointsOfText = (text, name, wanted) => pointsOf(encoder.encode(text), name, wanted);

/** Points from rows of text. */
export const pointsOfRows = (header, rows, name) =>
  new Points(encoder.encode([header, ...rows].map((row) => `${recordOf(row)}\n`).join("")), name);

function inUtf8(bytes, name, remarks) {
  const [first, second] = bytes;
  const wide = first === 0xff && second === 0xfe ? "utf-16le" : first === 0xfe && second === 0xff ? "utf-16be" : null;
  if (wide === null && isUtf8(bytes)) return bytes;
  const encoding = wide ?? "windows-1252";
  remarks.push(`${name} is not in UTF-8. It was read as ${wide === null ? "Windows-1252" : "UTF-16"}: check that all letters are correct.`);
  return encoder.encode(new TextDecoder(encoding).decode(bytes));
}

function isUtf8(bytes) {
  const strict = new TextDecoder("utf-8", { fatal: true });
  try {
    for (let i = 0; i < bytes.length; i += 1 << 20) strict.decode(bytes.subarray(i, i + (1 << 20)), { stream: true });
    strict.decode();
    return true;
  } catch {
    return false;
  }
}

/** The separator with which the first line names most of the features; a comma, unless another does better. */
function delimiterOf(bytes, wanted) {
  const end = bytes.findIndex((byte) => byte === 10 || byte === 13);
  const line = new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end));
  const names = new Set(wanted);
  const marks = [",", "\t", ";"].map((mark) => {
    const fields = fieldsOf(line, mark);
    return { mark, hits: fields.filter((field) => names.has(field)).length, fields: fields.length };
  });
  marks.sort((a, b) => b.hits - a.hits);
  if (marks[0].hits > 0) return marks[0].mark;
  return marks.sort((a, b) => b.fields - a.fields)[0].mark;
}

function withCommas(bytes, delimiter) {
  const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  const plain = marked ? bytes.subarray(3) : bytes;
  const { starts, ends, sizes } = findRecords(plain, delimiter.charCodeAt(0));
  const lines = starts.map((start, i) => {
    const fields = sizes[i] === 0 ? [] : fieldsOf(decoder.decode(plain.subarray(start, ends[i])), delimiter);
    return `${recordOf(fields)}\n`;
  });
  return encoder.encode(lines.join(""));
}
