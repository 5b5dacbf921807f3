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

/**
 * Where the fields of one record lie, written into `fields`: `starts[j]` to `ends[j]`, quotes and all. `odd[j]` is 1 where quotes
 * are not as RFC 4180 has them: in the middle of a field, before its end, or never closed.
 */
export function cutFields(bytes, start, end, fields, delimiter = 44) {
  let [state, j, odd] = [FIELD_START, 0, 0];
  fields.starts[0] = start;
  for (let i = start; i < end; i++) {
    const byte = bytes[i];
    if (state === QUOTED) {
      if (byte === QUOTE) state = QUOTE_IN_QUOTED;
    } else if (byte === delimiter) {
      fields.ends[j] = i;
      fields.odd[j++] = odd;
      fields.starts[j] = i + 1;
      [state, odd] = [FIELD_START, 0];
    } else if (byte === QUOTE) {
      if (state === FIELD) odd = 1;
      else state = QUOTED;
    } else {
      if (state === QUOTE_IN_QUOTED) odd = 1;
      state = FIELD;
    }
  }
  fields.ends[j] = end;
  fields.odd[j] = state === QUOTED ? 1 : odd;
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

/**
 * A record as RFC 4180 writes it. A single empty field is quoted, since an empty line may be no record; and so is one that begins
 * with U+FEFF, which would be taken for a byte order mark.
 */
export function recordOf(fields) {
  if (fields.length === 1 && fields[0] === "") return '""';
  return fields.map((field) => (/[",\r\n]|^\ufeff/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)).join(",");
}
