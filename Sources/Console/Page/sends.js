// Sends: search, one send with its way, and the schedule.

import {h, fill, card, table, pairs, badge, count, time, duration, ask, attempt} from './dom.js';
import {get, post, may} from './api.js';
import {platformName} from './overview.js';

const states = {accepted: 'accent', running: 'accent', scheduled: 'accent', settled: 'good', noTarget: '', expired: 'warn',
  deadLettered: 'bad', cancelled: ''};
export const stateBadge = send => badge(
  send.course && send.course !== 'running' && send.state !== 'cancelled' ? send.course : send.state,
  send.course === 'paused' ? 'warn' : states[send.state] ?? '');
export const sendLink = id => h('a', {class: 'id', href: '#/sends/' + id}, id);

/** How a send's audience reads. */
export function audience(text) {
  if (text === '*') return 'everyone';
  return text?.startsWith('username:') ? text.slice(9) : text ?? '–';
}

export function outcomeSum(counts) {
  const sum = {};
  for (const outcomes of Object.values(counts ?? {})) {
    for (const [outcome, number] of Object.entries(outcomes)) sum[outcome] = (sum[outcome] ?? 0) + number;
  }
  return sum;
}

const summary = counts => Object.entries(outcomeSum(counts)).map(([outcome, n]) => `${count(n)} ${outcome}`).join(', ')
  || '–';

/** A list that goes on at the end. */
export function paged(load, render, signal) {
  const list = h('div', {}), more = h('button', {type: 'button', hidden: true}, 'Show more');
  let rows = [], next = null;
  const fetchPage = async () => {
    more.disabled = true;
    const page = await attempt(() => load(next));
    more.disabled = false;
    if (!page || signal.aborted) return;
    rows = rows.concat(page.rows);
    next = page.next;
    more.hidden = !next;
    fill(list, render(rows));
  };
  more.addEventListener('click', fetchPage);
  fetchPage();
  return [list, more];
}

export function show(main, context) {
  if (context.rest[0]) return showOne(main, context, context.rest[0]);
  const {query} = context;
  const field = (name, props) => h('input', {name, value: query.get(name) ?? '', ...props});
  const id = field('id', {placeholder: 'the whole id', autocomplete: 'off'});
  const user = field('user', {autocomplete: 'off'});
  const from = field('from', {type: 'datetime-local'}), until = field('until', {type: 'datetime-local'});
  const state = h('select', {name: 'state'}, h('option', {value: ''}, 'any'),
    Object.keys(states).map(name => h('option', {selected: name === query.get('state')}, name)));
  const kind = h('select', {name: 'kind'}, h('option', {value: ''}, 'any'),
    ['broadcast', 'single'].map(name => h('option', {selected: name === query.get('kind')}, name)));
  const search = event => {
    event.preventDefault();
    if (id.value.trim()) {
      location.hash = '#/sends/' + encodeURIComponent(id.value.trim());
      return;
    }
    const parameters = new URLSearchParams();
    for (const input of [user, kind, state, from, until]) if (input.value) parameters.set(input.name, input.value);
    location.hash = '#/sends?' + parameters;
  };
  fill(main, h('div', {class: 'head'}, h('h1', {}, 'Sends')),
    h('section', {class: 'card'}, h('form', {class: 'row', onsubmit: search},
      h('label', {class: 'wide'}, 'Id', id), h('label', {}, 'Recipient', user), h('label', {}, 'Kind', kind),
      h('label', {}, 'State', state),
      h('label', {}, 'From', from), h('label', {}, 'Until', until), h('button', {class: 'primary'}, 'Search'))),
    h('section', {class: 'card'}, paged(async next => {
      const parameters = new URLSearchParams({limit: '50'});
      for (const name of ['user', 'kind', 'state']) if (query.get(name)) parameters.set(name, query.get(name));
      // The fields are in the visitor's zone, the API's times in UTC.
      for (const name of ['from', 'until']) {
        if (query.get(name)) parameters.set(name, new Date(query.get(name)).toISOString());
      }
      if (next) parameters.set('cursor', next);
      const page = await get('/api/sends?' + parameters, context.signal);
      return {rows: page.sends, next: page.next};
    }, rows => list(rows, 'No send matches. The newest appear when the ledger has read them.'), context.signal)));
}

const list = (rows, empty) => table('Sends', [
  {name: 'Send', of: s => sendLink(s.id)}, {name: 'State', of: stateBadge},
  {name: 'To', of: s => audience(s.to)}, {name: 'Sender', of: s => s.sender ?? '–'},
  {name: 'Accepted', of: s => time(s.acceptedAt)}, {name: 'Outcomes', of: s => summary(s.counts)},
], rows, empty);

async function showOne(main, {signal}, id) {
  const body = h('div', {class: 'grid'}), rest = h('div', {class: 'stack'});
  const title = h('span', {class: 'id'}, id);
  const refresh = h('button', {type: 'button', onclick: () => load()}, 'Refresh');
  fill(main, h('p', {}, h('a', {href: '#/sends'}, '← Sends')),
    h('div', {class: 'head'}, h('h1', {}, 'Send ', title), h('div', {class: 'actions'}, refresh)), body, rest);
  async function load() {
    const send = await attempt(() => get('/api/sends/' + encodeURIComponent(id), signal));
    if (signal.aborted) return;
    if (!send) {
      fill(body, h('p', {class: 'empty'}, 'There is no such send, or it was accepted a moment ago.'));
      return;
    }
    fill(body,
      card('State', pairs([['State', stateBadge(send)], ['Accepted', time(send.acceptedAt)],
        ['Due', send.sendAt && time(send.sendAt)], ['Settled', send.settledAt && time(send.settledAt)],
        ['Took', send.settledAt && duration((new Date(send.settledAt) - new Date(send.acceptedAt)) / 1000)],
        ...Object.entries(send.counts).map(([platform, outcomes]) => [platformName(platform),
          Object.entries(outcomes).map(([outcome, n]) => `${count(n)} ${outcome}`).join(', ')]),
        ['Broadcast', send.broadcast && h('a', {href: '#/broadcasts/' + id}, 'progress and control')]])),
      card('Way through the system', timeline(send)));
    fill(rest,
      card('Devices', table('Devices', [
        {name: 'Registration', of: d => h('span', {class: 'id'}, d.registration ?? '–')},
        {name: 'Platform', of: d => platformName(d.platform)},
        {name: 'Outcome', of: d => badge(d.outcome, d.outcome === 'delivered' ? 'good' : 'bad')},
        {name: 'Reason', of: d => d.reason ?? '–'}, {name: 'Status', num: true, of: d => String(d.status ?? '–')},
        {name: 'Attempts', num: true, of: d => String(d.attempts)},
      ], send.devices ?? [], send.devices ? 'No device was reached.' : 'The devices of large sends are only counted.')),
      h('section', {class: 'card'}, h('details', {}, h('summary', {}, 'Record'),
        h('pre', {tabindex: '0'}, JSON.stringify(send, null, 2)))));
  }
  await load();
}

const eventNames = {accepted: 'Accepted by the API', consumed: 'Taken by a worker', lookedUp: 'Devices looked up',
  pushed: 'Pushed', answered: 'Answered', settled: 'Settled'};

function timeline(send) {
  let events = send.timeline ?? [];
  if (events.length === 0) {
    events = [{event: 'accepted', at: send.acceptedAt}];
    if (send.settledAt) events.push({event: 'settled', at: send.settledAt});
  }
  const since = (e, other) => duration(Math.max(0, new Date(e.at) - new Date(other.at)) / 1000);
  return h('ol', {class: 'timeline'}, events.map((e, i) => h('li', {},
    h('b', {}, eventNames[e.event] ?? e.event), e.platform && ` · ${platformName(e.platform)}`,
    e.registration && h('span', {class: 'id'}, ' ' + e.registration),
    h('div', {class: 'took'}, time(e.at),
      i > 0 && ` · ${since(e, events[i - 1])} later, ${since(e, events[0])} in all`))));
}

export function showSchedule(main, {signal}) {
  const content = h('section', {class: 'card'});
  fill(main, h('div', {class: 'head'}, h('h1', {}, 'Schedule')),
    h('p', {class: 'muted'}, 'Sends that are held until their time, in your zone.'), content);
  const load = () => fill(content, paged(async next => {
    const page = await get('/api/sends?state=scheduled&limit=50' + (next ? '&cursor=' + next : ''), signal);
    return {rows: page.sends, next: page.next};
  }, rows => table('Scheduled sends', [
    {name: 'Send', of: s => sendLink(s.id)}, {name: 'Due', of: s => time(s.sendAt)}, {name: 'State', of: stateBadge},
    {name: 'To', of: s => audience(s.to)}, {name: 'Sender', of: s => s.sender ?? '–'},
    {name: 'Act', of: s => may('operate') && h('button', {
      type: 'button', class: 'danger', 'aria-label': `Cancel ${s.id}`,
      onclick: async () => {
        if (!await ask('Cancel this send?', `The send to ${audience(s.to)}, due ${time(s.sendAt)}, will not be sent. `
          + 'This cannot be undone.', 'Cancel the send', {isDanger: true})) return;
        await attempt(() => post(`/api/sends/${s.id}/cancel`), 'The send is cancelled.');
        load();
      }}, 'Cancel')},
  ], rows, 'Nothing is scheduled.'), signal));
  load();
}
