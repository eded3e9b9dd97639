// Devices: those of a user, a tag's size, removed devices, and a test send.

import {h, fill, card, table, badge, count, time, ask, attempt, toast} from './dom.js';
import {get, post, remove, may} from './api.js';
import {platformName} from './overview.js';
import {sendLink} from './sends.js';

export function show(main, {query, signal}) {
  const user = h('input', {name: 'user', value: query.get('user') ?? '', autocomplete: 'off', required: true});
  const tag = h('input', {name: 'tag', autocomplete: 'off', required: true});
  const size = h('p', {role: 'status'});
  const found = h('div', {}), gone = h('div', {}), answer = h('div', {role: 'status'});
  fill(main, h('div', {class: 'head'}, h('h1', {}, 'Devices')),
    h('div', {class: 'grid'},
      h('section', {class: 'card'}, h('form', {class: 'row', onsubmit: event => {
        event.preventDefault();
        location.hash = '#/devices?' + new URLSearchParams({user: user.value.trim()});
      }}, h('label', {class: 'wide'}, 'User', user), h('button', {class: 'primary'}, 'Show devices'))),
      h('section', {class: 'card'}, h('form', {class: 'row', onsubmit: async event => {
        event.preventDefault();
        const result = await attempt(() => get('/api/tags/' + encodeURIComponent(tag.value.trim()), signal));
        const most = result?.isLowerBound ? 'At least ' : '';
        size.textContent = result ? `${most}${count(result.registrations)} devices have the tag ${result.tag}.` : '';
      }}, h('label', {class: 'wide'}, 'Tag', tag), h('button', {}, 'Count')), size)),
    answer, found, gone);
  if (!query.get('user')) return;
  const name = query.get('user');
  const load = async () => {
    const page = await attempt(
      () => get('/api/registrations?' + new URLSearchParams({user: name, limit: '200'}), signal));
    if (!page || signal.aborted) return;
    fill(found, card(`Devices of ${name}`, table(`Devices of ${name}`, [
      {name: 'Registration', of: r => h('span', {class: 'id'}, r.id)},
      {name: 'Platform', of: r => platformName(r.platform)},
      {name: 'Tags', of: r => (r.tags ?? []).filter(t => !t.startsWith('username:')).join(', ') || '–'},
      {name: 'Registered', of: r => time(r.registeredAt)},
      {name: 'Act', of: r => h('div', {class: 'actions'},
        may('send:device') && h('button', {type: 'button', 'aria-label': `Test ${r.id}`, onclick: () => test(r)},
          'Test'),
        may('operate') && h('button', {type: 'button', class: 'danger', 'aria-label': `Remove ${r.id}`,
          onclick: () => drop(r)}, 'Remove'))},
    ], page.registrations, 'This user has no device.')));
  };
  const tombstones = async () => {
    try {
      const page = await get('/api/tombstones?' + new URLSearchParams({user: name}), signal);
      fill(gone, card('Removed and quarantined', table('Removed and quarantined devices', [
        {name: 'Registration', of: t => h('span', {class: 'id'}, t.registration)},
        {name: 'Platform', of: t => t.platform ? platformName(t.platform) : '–'},
        {name: 'State', of: t => badge(t.restorableUntil ? 'quarantined' : 'removed', 'warn')},
        {name: 'Reason', of: t => [t.cause, t.detail].filter(Boolean).join(': ')},
        {name: 'At', of: t => time(t.at)},
        {name: 'Restorable until', of: t => t.restorableUntil ? time(t.restorableUntil) : '–'},
      ], page.tombstones, 'None of this user\'s devices was removed.')));
    } catch (error) {
      if (error.name !== 'AbortError') toast(error.message, true);
    }
  };

  async function drop(registration) {
    if (!await ask('Remove this device?', `${name} gets no notification on it until its app registers again.`,
      'Remove the device', {isDanger: true})) return;
    await attempt(() => remove('/api/registrations/' + registration.id), 'The device is removed.');
    load();
    tombstones();
  }

  async function test(registration) {
    const text = `The device of ${name} shows a notification: “Test from operations”.`;
    if (!await ask('Send a test?', text, 'Send')) return;
    const sent = await attempt(() => post('/api/sends', {to: {registration: registration.id},
      message: {title: 'Test', body: 'Test from operations'}, ttl: 60}));
    if (!sent) return;
    const say = (...content) => fill(answer, card('Test send', h('p', {}, sendLink(sent.id), ' ', content)));
    say('waits for the answer of the service …');
    for (let round = 0; round < 60 && !signal.aborted; round += 1) {
      await new Promise(resolve => setTimeout(resolve, 500));
      let report;
      // The ledger knows it a moment later.
      try { report = await get('/api/sends/' + sent.id, signal); } catch { continue; }
      if (report.state === 'accepted') continue;
      const device = report.devices?.[0];
      return say(device ? [badge(device.outcome, device.outcome === 'delivered' ? 'good' : 'bad'),
        ` The service answered ${device.status ?? 'nothing'}${device.reason ? `: ${device.reason}` : '.'}`]
        : `ended as ${report.state}: the device is no longer registered.`);
    }
    say('has no answer after 30 s; see the send.');
  }
  load();
  tombstones();
}
