// Broadcasts: progress, rate and failures while they happen, and control.

import {h, fill, card, table, pairs, badge, count, rate, time, duration, percent, ask, attempt} from './dom.js';
import {get, post, may, pulse} from './api.js';
import {platformName} from './overview.js';
import {sendLink, stateBadge, audience, outcomeSum} from './sends.js';

export function show(main, context) {
  if (context.rest[0]) return showOne(main, context, context.rest[0]);
  const {signal} = context;
  const running = h('div', {}), past = h('div', {});
  fill(main, h('div', {class: 'head'}, h('h1', {}, 'Broadcasts')), card('Running', running),
    card('Ended', past, h('p', {}, h('a', {href: '#/sends?kind=broadcast'}, 'Search all broadcasts'))));
  const columns = [
    {name: 'Broadcast', of: s => h('a', {class: 'id', href: '#/broadcasts/' + s.id}, s.id)},
    {name: 'State', of: broadcastBadge}, {name: 'To', of: s => audience(s.to)},
    {name: 'Sender', of: s => s.sender ?? '–'},
    {name: 'Accepted', of: s => time(s.acceptedAt)},
    {name: 'Delivered', num: true, of: s => count(outcomeSum(s.counts).delivered ?? 0)},
  ];
  async function load() {
    const lists = await attempt(() => Promise.all(['state=accepted&limit=200', 'limit=50'].map(
      query => get('/api/sends?kind=broadcast&' + query, signal))));
    if (!lists || signal.aborted) return;
    const [open, latest] = lists.map(list => list.sends);
    fill(running, table('Running broadcasts', columns, open, 'No broadcast is running.'));
    fill(past, table('Ended broadcasts', columns, latest.filter(send => send.state !== 'accepted'),
      'No broadcast has ended lately.'));
  }
  every(2000, load, signal);
}

/** The state of a broadcast, which runs once it is accepted. */
const broadcastBadge = send => stateBadge({...send, state: send.state === 'accepted' ? 'running' : send.state});

/** Repeats until the signal aborts; the next call begins after the last one has ended. */
function every(milliseconds, act, signal) {
  const step = async () => {
    if (signal.aborted) return;
    if (!document.hidden) await act();
    if (!signal.aborted) setTimeout(step, milliseconds);
  };
  step();
}

async function showOne(main, {signal}, id) {
  const path = '/api/sends/' + encodeURIComponent(id);
  const state = h('span', {}), facts = h('div', {}), reached = h('div', {}), workers = h('div', {});
  const failures = h('div', {});
  const bar = h('progress', {max: '1', value: 0, 'aria-label': 'Finished pages'});
  const course = h('p', {class: 'muted'});
  const act = (name, title, text, success, options) => {
    const steer = async () => {
      if (!await ask(title, text, title.replace('?', ''), options)) return;
      await attempt(() => post(`${path}/${name}`), success);
      await load();
    };
    return h('button', {type: 'button', disabled: true, class: options?.isDanger && 'danger', onclick: steer},
      title.split(' ')[0]);
  };
  const pause = act('pause', 'Pause this broadcast?', 'Workers stop within about a second; pushes in flight are finished. '
    + 'Devices that were not reached wait until it is resumed, or until it expires.', 'The broadcast pauses.');
  const resume = act('resume', 'Resume this broadcast?', 'It goes on where it was paused. No device is reached twice.',
    'The broadcast goes on.');
  const cancel = act('cancel', 'Cancel this broadcast?', 'Devices that were not reached yet will never be. '
    + 'This cannot be undone.', 'The broadcast is cancelled.', {isDanger: true});
  const limit = h('button', {type: 'button', disabled: true, onclick: async () => {
    const most = h('input', {type: 'number', min: '1', max: '10000000', inputmode: 'numeric'});
    const agreed = await ask('Change the rate?', 'All workers together push at most this many notifications of this '
      + 'broadcast per second. Leave it empty for no limit.', 'Change the rate',
    {extra: h('label', {}, 'Pushes per second', most)});
    if (!agreed) return;
    await attempt(() => post(`${path}/rate`, {maxPerSecond: most.value ? Number(most.value) : null}),
      'The rate is changed.');
    await load();
  }}, 'Rate');
  fill(main, h('p', {}, h('a', {href: '#/broadcasts'}, '← Broadcasts')),
    h('div', {class: 'head'}, h('h1', {}, 'Broadcast ', h('span', {class: 'id'}, id)),
      may('operate') && h('div', {class: 'actions'}, pause, resume, limit, cancel)),
    h('section', {class: 'card'}, h('div', {class: 'head'}, h('h2', {}, 'Progress'), state), bar, course),
    h('div', {class: 'grid'}, card('Figures', facts), card('Devices by outcome', reached)),
    h('div', {class: 'grid'}, card('Failures by reason', failures), card('Segments by worker', workers)));
  const samples = [];
  async function load() {
    const send = await attempt(() => get(path, signal));
    if (!send || signal.aborted) return;
    fill(state, broadcastBadge({...send, course: send.broadcast?.course ?? send.course}));
    const sum = outcomeSum(send.counts), all = Object.values(sum).reduce((a, b) => a + b, 0);
    samples.push([performance.now(), all]);
    if (samples.length > 8) samples.shift();
    const [[t0, n0], [t1, n1]] = [samples[0], samples.at(-1)];
    const speed = t1 > t0 ? (n1 - n0) / (t1 - t0) * 1000 : 0;
    const b = send.broadcast, isOpen = send.state === 'accepted';
    bar.value = b && b.pages > 0 ? b.finishedPages / b.pages : isOpen ? 0 : 1;
    course.textContent = b ? `${count(b.finishedPages)} of ${count(b.pages)} pages`
      + (b.pages ? ` · ${percent(bar.value)}` : '')
      + (isOpen && b.course === 'running' && b.remainingSeconds !== null
        ? ` · about ${duration(b.remainingSeconds)} left` : '')
      + (isOpen && b.course === 'paused' ? ` · paused by ${b.cause === 'caller' ? 'a caller' : b.cause}` : '')
      : 'No worker has begun it.';
    pause.disabled = !isOpen || b?.course === 'paused';
    resume.disabled = !isOpen || b?.course !== 'paused';
    cancel.disabled = limit.disabled = !isOpen;
    fill(facts, pairs([['Devices done', h('b', {id: 'done'}, count(all))], ['Rate', `${rate(speed)} devices/s`],
      ['Limit', b && 'maxPerSecond' in b ? b.maxPerSecond ? `${count(b.maxPerSecond)} /s` : 'none' : null],
      ['Accepted', time(send.acceptedAt)], ['Settled', send.settledAt && time(send.settledAt)],
      ['Send', sendLink(id)]]));
    fill(reached, table('Devices by platform and outcome', [
      {name: 'Platform', of: r => platformName(r.platform)},
      {name: 'Outcome', of: r => badge(r.outcome, r.outcome === 'delivered' ? 'good' : 'bad')},
      {name: 'Devices', num: true, of: r => count(r.number)},
    ], Object.entries(send.counts).flatMap(([platform, outcomes]) => Object.entries(outcomes).map(
      ([outcome, number]) => ({platform, outcome, number}))), 'No page is finished yet.'));
    fill(failures, table('Failures by reason', [
      {name: 'Platform', of: f => platformName(f.platform)}, {name: 'Outcome', of: f => badge(f.outcome, 'bad')},
      {name: 'Reason', of: f => f.reason || '–'}, {name: 'Devices', num: true, of: f => count(f.devices)},
      {name: 'Share', num: true, of: f => percent(f.devices / all)},
    ], send.failures, 'No device has failed in the finished pages.'));
  }
  const end = pulse.watch(now => {
    const shares = now.processes.flatMap(process => process.segments.filter(share => share.send === id)
      .map(share => ({...share, process})));
    fill(workers, table('Segments by worker', [
      {name: 'Worker', of: s => `${s.process.pid} on ${s.process.host}`},
      {name: 'Segments', num: true, of: s => count(s.segments)},
      {name: 'Pages ahead', num: true, of: s => count(s.pagesAhead)},
    ], shares, 'No worker holds a segment of it.'));
  });
  signal.addEventListener('abort', end);
  every(1000, load, signal);
}
