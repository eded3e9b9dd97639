// Dead letters: reasons, one letter, and redrive of a selection after a dry run.

import {h, fill, card, table, pairs, badge, count, time, ask, attempt} from './dom.js';
import {get, post, may} from './api.js';
import {paged, sendLink} from './sends.js';

const records = number => `${count(number)} ${number === 1 ? 'record' : 'records'}`;

/** Redrives a selection request by request: one request takes a limited number of letters. */
async function redriveAllOf(selection) {
  const sum = {redriven: 0, redrivenBefore: 0};
  let cursor;
  do {
    const part = await post('/api/dead-letters/redrive', cursor ? {...selection, cursor} : selection);
    sum.redriven += part.redriven;
    sum.redrivenBefore += part.redrivenBefore;
    cursor = part.next;
  } while (cursor);
  return sum;
}

export function show(main, context) {
  if (context.rest[0]) return showOne(main, context, context.rest[0]);
  const {query, signal} = context;
  const reason = query.get('reason');
  const chosen = new Set();
  const counts = h('div', {}), content = h('section', {class: 'card'});
  const redriveChosen = h('button', {type: 'button', disabled: true,
    onclick: () => redrive({ids: [...chosen]},
      chosen.size === 1 ? 'the selected letter' : `${chosen.size} selected letters`)}, 'Redrive selection');
  const redriveAll = reason && h('button', {type: 'button',
    onclick: () => redrive({reason}, `all letters with the reason ${reason}`)}, `Redrive all “${reason}”`);
  fill(main, h('div', {class: 'head'}, h('h1', {}, 'Dead letters'),
    may('operate') && h('div', {class: 'actions'}, redriveChosen, redriveAll)),
  h('p', {class: 'muted'}, 'Records that could not be processed. Mend the cause, then put them back.'),
  counts, content);

  /** A dry run tells what would happen; then the visitor decides. */
  async function redrive(selection, words) {
    const trial = await attempt(() => redriveAllOf({...selection, dryRun: true}));
    if (!trial) return;
    const text = `${records(trial.redriven)} will go back where they came from, and be processed again.`
      + (trial.redrivenBefore > 0 ? ` ${records(trial.redrivenBefore)} left out: put back before.` : '');
    if (!await ask(`Redrive ${words}?`, text, 'Redrive')) return;
    const done = await attempt(() => redriveAllOf(selection));
    if (done) await attempt(async () => {}, `Put back: ${records(done.redriven)}.`);
    load();
  }

  function load() {
    chosen.clear();
    redriveChosen.disabled = true;
    fill(content, paged(async next => {
      const parameters = new URLSearchParams({limit: '50'});
      if (reason) parameters.set('reason', reason);
      if (next) parameters.set('cursor', next);
      const page = await get('/api/dead-letters?' + parameters, signal);
      if (page.counts) {
        const reasons = Object.entries(page.counts).filter(([name, n]) => n > 0 || name === reason);
        fill(counts, h('div', {class: 'actions'},
          h('a', {href: '#/letters', 'aria-current': !reason && 'true'}, 'All'),
          reasons.map(([name, n]) => h('a', {href: '#/letters?' + new URLSearchParams({reason: name}),
            'aria-current': name === reason && 'true'},
          badge(`${name} ${count(n)}`, name === reason ? 'accent' : '')))));
      }
      return {rows: page.letters, next: page.next};
    }, rows => table('Dead letters', [
      may('operate') && {name: 'Select', of: l => h('input', {type: 'checkbox', 'aria-label': `Select ${l.id}`,
        onchange: event => {
          if (event.target.checked) chosen.add(l.id);
          else chosen.delete(l.id);
          redriveChosen.disabled = chosen.size === 0;
        }})},
      {name: 'Letter', of: l => h('a', {class: 'id', href: '#/letters/' + l.id}, l.id)},
      {name: 'At', of: l => time(l.at)}, {name: 'Reason', of: l => badge(l.reason, 'bad')},
      {name: 'Detail', of: l => l.detail ?? '–'}, {name: 'From', of: l => l.origin?.topic ?? '–'},
      {name: 'Send', of: l => l.send ? sendLink(l.send) : '–'},
    ].filter(Boolean), rows, 'There are no dead letters.'), signal));
  }
  load();
}

async function showOne(main, {signal}, id) {
  const body = h('div', {class: 'grid'});
  fill(main, h('p', {}, h('a', {href: '#/letters'}, '← Dead letters')),
    h('div', {class: 'head'}, h('h1', {}, 'Dead letter ', h('span', {class: 'id'}, id))), body);
  const letter = await attempt(() => get('/api/dead-letters/' + encodeURIComponent(id), signal));
  if (signal.aborted) return;
  if (!letter) return void fill(body, h('p', {class: 'empty'}, 'There is no such dead letter.'));
  const record = letter.record;
  fill(body,
    card('Why', pairs([['Reason', badge(letter.reason, 'bad')], ['Detail', letter.detail], ['At', time(letter.at)],
      ['Came from', `${letter.origin.topic}, partition ${letter.origin.partition}, offset ${letter.origin.offset}`],
      ['Size', `${count(letter.valueSize)} bytes`],
      ['Whole', letter.isWhole ? 'yes' : 'no: it was cut, and cannot be redriven'],
      ['Send', letter.send && sendLink(letter.send)]])),
    card('Its record', record ? pairs([['Sender', record.sender], ['To', record.to],
      ['Platforms', record.platforms?.join(', ')], ['Accepted', time(record.acceptedAt)],
      ['Deferrals', record.deferrals === undefined ? null : String(record.deferrals)]])
      : h('p', {class: 'empty'}, 'The record cannot be read.')),
    record?.devices && card('Devices', table('Devices', [
      {name: 'Registration', of: d => h('span', {class: 'id'}, d.registration)},
      {name: 'Platform', of: d => d.platform},
      {name: 'Outcome', of: d => d.outcome ?? 'waiting'}, {name: 'Reason', of: d => d.reason ?? '–'},
      {name: 'Attempts', num: true, of: d => String(d.attempts)},
    ], record.devices, 'None.')));
}
