// CSV as Python's csv.reader reads it, which is how the server does: quotes count at the beginning of a field only, and CR, LF
// or both end a record. Records are found in bytes, so that a large file is neither copied nor decoded as a whole.

const LF = 10;
const CR = 13;
const QUOTE = 34;

const [FIELD_START, FIELD, QUOTED, QUOTE_IN_QUOTED] = [0, 1, 2, 3];

/**
 * Where records lie: `starts[i]` to `ends[i]`, without the end of the line; `lines[i]` is the line on which a record begins and
 * `sizes[i]` the number of its fields. Empty lines are records here, with no field.
 */
export function findRecords(bytes, delimiter = 44) {
  const found = { starts: [], ends: [], lines: [], sizes: [] };
  let [state, start, fields, line, firstLine] = [FIELD_START, 0, 1, 1, 1];
  const close = (end) => {
    found.starts.push(start);
    found.ends.push(end);
    found.lines.push(firstLine);
    found.sizes.push(end === start ? 0 : fields);
  };
  const n = bytes.length;
  for (let i = 0; i < n; i++) {
    const byte = bytes[i];
    const ends = byte === LF || byte === CR;
    if (ends && !(byte === LF && i > 0 && bytes[i - 1] === CR)) line++;
    if (state === QUOTED) {
      if (byte === QUOTE) state = QUOTE_IN_QUOTED;
    } else if (ends) {
      close(i);
      if (byte === CR && bytes[i + 1] === LF) i++;
      [state, start, fields, firstLine] = [FIELD_START, i + 1, 1, line];
    } else if (byte === delimiter) {
      fields++;
      state = FIELD_START;
    } else if (byte === QUOTE && state !== FIELD) {
      state = QUOTED; // the first of a field, or the second of two inside one
    } else {
      state = FIELD;
    }
  }
  if (start < n) close(n);
  return found;
}

/** The fields of one record. */
export function fieldsOf(text, delimiter = ",") {
  if (!text.includes('"')) return text.split(delimiter);
  const fields = [];
  let [state, field] = [FIELD_START, ""];
  for (const letter of text) {
    if (state === QUOTED) {
      if (letter === '"') state = QUOTE_IN_QUOTED;
      else field += letter;
    } else if (letter === delimiter) {
      fields.push(field);
      [state, field] = [FIELD_START, ""];
    } else if (letter === '"' && state !== FIELD) {
      if (state === QUOTE_IN_QUOTED) field += '"';
      state = QUOTED;
    } else {
      field += letter;
      state = FIELD;
    }
  }
  return [...fields, field];
}

/** A record as RFC 4180 writes it. A single empty field is quoted, since an empty line may be no record. */
export function recordOf(fields) {
  if (fields.length === 1 && fields[0] === "") return '""';
  return fields.map((field) => (/[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)).join(",");
}
