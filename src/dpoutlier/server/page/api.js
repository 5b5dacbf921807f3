// Requests to this server. The key lives here, in memory, and nowhere else.

let key = null;

/** What the server, or the way to it, refused; `status` is 0 if no answer came. */
export class ServerProblem extends Error {
  constructor(message, status = 0, { code = "", row, column, value, must } = {}) {
    super(message);
    Object.assign(this, { status, code, row, column, value, must });
  }
}

export function useKey(text) {
  key = text;
}

export const hasKey = () => key !== null;

/** Whether a request header can hold the text. */
export const canBeKey = (text) => /^[\x21-\x7e]+$/.test(text);

const WRONG_KEY = "This key is not valid here. Check it, or ask the operator of the server.";
const LONGEST_WAIT = 60;
const MAX_WAITS = 6;

async function request(path, options) {
  const headers = { Accept: "application/json", ...options.headers };
  if (key !== null) headers.Authorization = `Bearer ${key}`;
  try {
    return await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerProblem("The server does not answer. Is it running, and is there a connection to it?");
  }
}

async function problemOf(answer) {
  try {
    const { error } = await answer.json();
    return new ServerProblem(answer.status === 401 ? WRONG_KEY : error.message, answer.status, error);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return new ServerProblem(`The server answered with status ${answer.status}, without a reason.`, answer.status);
  }
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** The answer in JSON. A server that asks to wait is given the time. */
export async function ask(path, options = {}) {
  for (let waits = 0; ; waits++) {
    const answer = await request(path, options);
    if (answer.ok) return answer.json();
    const problem = await problemOf(answer);
    const seconds = Number(answer.headers.get("Retry-After") ?? NaN);
    const patient = (answer.status === 429 || answer.status === 503) && seconds <= LONGEST_WAIT && waits < MAX_WAITS;
    if (!patient) throw problem;
    await pause(Math.max(seconds, 0.2), options.signal);
  }
}

const modelPath = (id) => `v1/models/${encodeURIComponent(id)}`;

export const models = async () => (await ask("v1/models")).models;
export const modelDetail = (id) => ask(modelPath(id));

const csv = (body, signal) => ({ method: "POST", body, signal, headers: { "Content-Type": "text/csv" } });

export function score(id, body, parameters, signal) {
  return ask(`${modelPath(id)}/score?${new URLSearchParams(parameters)}`, csv(body, signal));
}

export const explain = (id, body, signal) => ask(`${modelPath(id)}/explain`, csv(body, signal));
