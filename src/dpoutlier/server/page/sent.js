// What leaves the browser: the columns that the model needs, in its order, and nothing else of a file.

import { cutFields, fieldsOf, recordOf } from "./csv.js";

const [LF, COMMA] = [10, 44];

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();

/** Which columns the model needs. One that knows no names takes all but the person's, in the order of the file. */
export function neededColumns(header, model) {
  if (model.named) return model.features.map((feature) => header.indexOf(feature.name));
  return [...header.keys()].filter((j) => header[j] !== model.person);
}

/** The needed columns of all points as CSV in UTF-8, written once; requests take their rows from it. */
export class Sent {
  constructor(points, model) {
    this.length = points.length;
    this.columns = neededColumns(points.header, model);
    this.header = encoder.encode(`${recordOf(this.columns.map((j) => points.header[j]))}\n`);
    this.bytes = new Uint8Array(points.plain.length + 2 * points.length); // room for the usual case
    this.offsets = new Float64Array(points.length + 1); // row i lies between offsets i and i + 1
    this.#write(points);
  }

  /** A value goes as its bytes stand. Only one whose quotes are not those of RFC 4180 is written anew. */
  #write(points) {
    const { plain, starts, ends } = points;
    const width = points.header.length;
    const fields = { starts: new Float64Array(width), ends: new Float64Array(width), odd: new Uint8Array(width) };
    const alone = this.columns.length === 1;
    let at = 0;
    for (let row = 0; row < this.length; row++) {
      cutFields(plain, starts[row], ends[row], fields);
      for (const j of this.columns) {
        let [from, bytes, to] = [fields.starts[j], plain, fields.ends[j]];
        if (fields.odd[j] || (alone && from === to)) {
          bytes = encoder.encode(recordOf([fieldsOf(decoder.decode(plain.subarray(from, to)))[0]]));
          [from, to] = [0, bytes.length];
        }
        if (at + to - from + 1 > this.bytes.length) this.#grow(at + to - from + 1);
        const target = this.bytes;
        while (from < to) target[at++] = bytes[from++];
        target[at++] = COMMA;
      }
      this.bytes[at - 1] = LF;
      this.offsets[row + 1] = at;
    }
  }

  #grow(wanted) {
    const larger = new Uint8Array(2 * wanted);
    larger.set(this.bytes);
    this.bytes = larger;
  }

  /** Bytes of a request with the rows from `first` to before `last`. */
  sizeOf(first, last) {
    return this.header.length + this.offsets[last] - this.offsets[first];
  }

  /** The body of that request. */
  part(first, last) {
    return new Blob([this.header, this.bytes.subarray(this.offsets[first], this.offsets[last])]);
  }
}
