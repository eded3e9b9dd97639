// Elements, tables, numbers and times.

/** Makes an element. Text is never read as HTML. */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'value') element.value = value;
    else element.setAttribute(key, value === true ? '' : value);
  }
  add(element, children);
  return element;
}

/** Makes an element of a drawing. */
export function s(name, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child);
  }
}

/** Replaces the content of an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/** A card with a heading. */
export function card(title, ...children) {
  return h('section', {class: 'card'}, h('div', {class: 'head'}, h('h2', {}, title)), children);
}

/**
 * A table that becomes a list of pairs on a narrow screen. Columns: {name, of: row => content, num}.
 */
export function table(caption, columns, rows, empty) {
  if (rows.length === 0) return h('p', {class: 'empty'}, empty);
  return h('div', {class: 'scroll'}, h('table', {class: 'fold', 'aria-label': caption},
    h('thead', {}, h('tr', {}, columns.map(c => h('th', {scope: 'col', class: c.num && 'num'}, c.name)))),
    h('tbody', {}, rows.map(row => h('tr', {}, columns.map(c =>
      h('td', {class: c.num && 'num', 'data-label': c.name}, c.of(row))))))));
}

export function pairs(list) {
  return h('dl', {}, list.filter(([, value]) => value !== undefined && value !== null && value !== '')
    .map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));
}

export function badge(text, kind) { return h('span', {class: 'badge ' + (kind ?? '')}, text); }

const whole = new Intl.NumberFormat(undefined, {maximumFractionDigits: 0});
const fine = new Intl.NumberFormat(undefined, {maximumFractionDigits: 1});
const moment = new Intl.DateTimeFormat(undefined, {dateStyle: 'medium', timeStyle: 'medium'});
const clock = new Intl.DateTimeFormat(undefined, {timeStyle: 'medium'});
const minute = new Intl.DateTimeFormat(undefined, {hour: 'numeric', minute: '2-digit'});

export const count = number => whole.format(number);
export const rate = number => number > 0 && number < 10 ? fine.format(number) : whole.format(number);
export const time = value => value ? moment.format(new Date(value)) : '–';
export const timeOfDay = value => clock.format(new Date(value));
export const minuteOfDay = value => minute.format(new Date(value));
export const bytes = number => number >= 1 << 30 ? fine.format(number / (1 << 30)) + ' GiB'
  : whole.format(number / (1 << 20)) + ' MiB';
export const percent = share => whole.format(share * 100) + ' %';

/** A duration in the largest fitting unit. */
export function duration(seconds) {
  if (seconds < 1) return whole.format(seconds * 1000) + ' ms';
  if (seconds < 100) return fine.format(seconds) + ' s';
  if (seconds < 6000) return whole.format(seconds / 60) + ' min';
  if (seconds < 172800) return whole.format(seconds / 3600) + ' h';
  return whole.format(seconds / 86400) + ' days';
}

/** Shows the visitor a message. */
export function toast(text, isBad) {
  const line = h('p', {class: isBad && 'bad'}, text);
  document.getElementById('toast').append(line);
  setTimeout(() => line.remove(), 6000);
}

/**
 * Asks once before an act. Returns whether the visitor agrees.
 * extra: a control inside the dialogue.
 */
export function ask(title, text, verb, {isDanger = false, extra} = {}) {
  const dialog = document.getElementById('ask');
  document.getElementById('ask-title').textContent = title;
  document.getElementById('ask-text').textContent = text;
  fill(document.getElementById('ask-extra'), extra);
  const yes = document.getElementById('ask-yes');
  yes.textContent = verb;
  yes.className = isDanger ? 'danger' : 'primary';
  dialog.returnValue = 'no';
  dialog.showModal();
  return new Promise(resolve => dialog.addEventListener(
    'close', () => resolve(dialog.returnValue === 'yes'), {once: true}));
}

/** Runs an act, shows its error, and tells its success. Returns its result or undefined. */
export async function attempt(act, success) {
  try {
    const result = await act();
    if (success) toast(success);
    return result;
  } catch (error) {
    if (error.name !== 'AbortError') toast(error.message, true);
    return undefined;
  }
}
