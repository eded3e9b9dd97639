// The HTTP API: the page is a plain client of it.

const hub = new URLSearchParams(location.search).get('hub');
const base = hub && hub !== 'default' ? '/hubs/' + encodeURIComponent(hub) : '';

/** The session: user, hub, scopes, csrfToken; null without a login. */
export let session = null;
const loggedOut = new Set();

export function onLogOut(handler) { loggedOut.add(handler); }

/** The answer of the API to a request that failed. */
export class Problem extends Error {
  constructor(status, document) {
    super(document.detail || document.title || `The server answered ${status}.`);
    this.status = status;
    this.code = document.code;
  }
}

async function send(method, path, {body, signal, accept} = {}) {
  // The header field keeps the browser from asking for a password by itself, and is the session's token.
  const headers = {'X-CSRF-Token': session?.csrfToken ?? '-', Accept: accept ?? 'application/json'};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(base + path, {
      method, headers, signal, cache: 'no-store', credentials: 'same-origin',
      body: body === undefined ? undefined : JSON.stringify(body)});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem(0, {detail: 'The server does not answer.'});
  }
  if (response.ok) return response;
  let document = {};
  try { document = await response.json(); } catch { /* A proxy's answer. */ }
  if (response.status === 401 && session) {
    session = null;
    for (const handler of loggedOut) handler('Your session has ended.');
  }
  throw new Problem(response.status, document);
}

async function json(method, path, options) {
  const response = await send(method, path, options);
  return response.status === 204 ? null : await response.json();
}

export const get = (path, signal) => json('GET', path, {signal});
export const post = (path, body) => json('POST', path, {body});
export const remove = path => json('DELETE', path);
export const may = scope => session?.scopes.includes(scope) ?? false;

export async function logIn(credentials) {
  session = await json('POST', '/api/session', {body: credentials});
}

/** Takes up the session of the cookie. Returns whether there is one. */
export async function resume() {
  try {
    const found = await json('GET', '/api/session');
    if (!found.csrfToken) return false;
    session = found;
    return true;
  } catch (error) {
    if (error.status === 401) return false;
    throw error;
  }
}

export async function logOut() {
  await json('DELETE', '/api/session');
  session = null;
  for (const handler of loggedOut) handler('');
}

/** The state of the deployment, second by second, for all parts of the page. */
export const pulse = {
  state: null, history: null, isLate: false, watchers: new Set(),

  /** Calls back now and every second; returns a function that ends it. */
  watch(callback) {
    this.watchers.add(callback);
    if (this.state) callback(this.state, this.history);
    return () => this.watchers.delete(callback);
  },

  /** Follows the stream until the signal aborts. */
  async follow(signal) {
    let isWhole = false;
    while (!signal.aborted) {
      try {
        if (!isWhole) {
          const state = await get('/api/pulse', signal);
          this.history = state.history;
          this.show(state);
          isWhole = true;
        }
        await this.events(signal);
      } catch (error) {
        if (signal.aborted || error.status === 401) return;
        // Seconds are missing now.
        isWhole = false;
        this.isLate = true;
        for (const callback of this.watchers) if (this.state) callback(this.state, this.history);
        await new Promise(resolve => setTimeout(resolve, 2000));
      }
    }
  },

  /** Takes the events of a stream until it ends. Fails after ten silent seconds, as behind a proxy that collects. */
  async events(signal) {
    const response = await send('GET', '/api/pulse', {accept: 'text/event-stream', signal});
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = '';;) {
      let timer;
      const silence = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error('The stream is silent.')), 10000);
      });
      let part;
      try {
        part = await Promise.race([reader.read(), silence]);
      } catch (error) {
        reader.cancel().catch(() => {});
        throw error;
      } finally {
        clearTimeout(timer);
      }
      if (part.done) return;
      text += part.value;
      for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
        const line = text.slice(0, end).split('\n').find(line => line.startsWith('data: '));
        if (line) this.take(JSON.parse(line.slice(6)));
      }
    }
  },

  /** Shows a state to all parts of the page. */
  show(state) {
    this.state = state;
    this.isLate = false;
    for (const callback of this.watchers) callback(this.state, this.history);
  },

  take(state) {
    for (const name of ['accepted', 'dispatched', 'delivered', 'failed', 'inFlight', 'oldest']) {
      const values = this.history[name];
      values.push(state.figures[name]);
      if (values.length > 900) values.shift();
    }
    this.history.until = state.at;
    this.show({...this.state, ...state});
  },
};
