// The state of the deployment now, and the last fifteen minutes.

import {h, fill, card, table, badge, count, rate, bytes, percent, duration, time} from './dom.js';
import {Chart, sparkline} from './chart.js';
import {pulse} from './api.js';
import {titles} from './platforms.js';

const levels = {critical: ['Critical', 'bad'], warning: ['Warning', 'warn'], notice: ['Notice', 'accent']};
export const platformName = name => titles[name] ?? name;

const figures = [
  ['accepted', 'Accepted', 1], ['dispatched', 'Dispatched', 2], ['delivered', 'Delivered', 3], ['failed', 'Failed', 4],
];

export function show(main, {signal}) {
  const findings = h('div', {}), numbers = h('div', {class: 'figures'}), rest = h('div', {class: 'grid roomy'});
  const processes = h('div', {}), metrics = h('div', {});
  const chart = new Chart('Sends and pushes', [
    {name: 'Accepted', key: 'accepted', number: 1}, {name: 'Dispatched', key: 'dispatched', number: 2},
    {name: 'Delivered', key: 'delivered', number: 3}, {name: 'Failed', key: 'failed', number: 4}]);
  const filter = h('input', {type: 'search', placeholder: 'fanfare_…'});
  const all = h('details', {ontoggle: () => showMetrics()}, h('summary', {}, 'All metrics'),
    h('label', {}, 'Name contains', filter), metrics);
  fill(main,
    h('div', {class: 'head'}, h('h1', {}, 'Overview')), findings, numbers,
    h('section', {class: 'card'}, h('div', {class: 'head'}, h('h2', {}, 'Per second'), chart.legend), chart.element),
    rest, card('Processes', processes), h('section', {class: 'card'}, all));

  function showMetrics() {
    if (!all.open || !pulse.state?.metrics) return;
    const rows = pulse.state.metrics.filter(metric => metric.name.includes(filter.value.trim())).slice(0, 300);
    fill(metrics, h('p', {class: 'muted'}, 'Sums over all processes when this page was opened.'),
      table('Metrics', [
        {name: 'Metric', of: m => h('code', {}, m.name)},
        {name: 'Labels', of: m => Object.entries(m.labels).map(([key, value]) => `${key}=${value}`).join(' ')},
        {name: 'Value', num: true, of: m => rate(m.value)},
        {name: 'Per second', num: true, of: m => m.kind === 'counter' ? rate(m.perSecond) : ''},
      ], rows, 'No metric has this name.'));
  }
  filter.addEventListener('input', showMetrics);

  const end = pulse.watch((state, history) => {
    showFindings(findings, state);
    fill(numbers,
      figures.map(([key, name, number]) => h('section', {class: 'card figure'}, h('h3', {}, name),
        h('strong', {}, rate(state.figures[key]), h('small', {}, ' /s')), sparkline(history[key], number))),
      h('section', {class: 'card figure'}, h('h3', {}, 'In flight'), h('strong', {}, count(state.figures.inFlight)),
        sparkline(history.inFlight, 2)),
      h('section', {class: 'card figure'}, h('h3', {}, 'Oldest waiting'),
        h('strong', {}, state.figures.oldest > 0 ? duration(state.figures.oldest) : 'none'),
        sparkline(history.oldest, 4)));
    chart.show(history);
    fill(rest, outcomes(state), waiting(state), services(state));
    fill(processes, table('Processes', [
      {name: 'Role', of: p => h('b', {}, p.role)},
      {name: 'State', of: p => p.isSilent ? badge('silent', 'warn') : p.problems.length
        ? badge('not ready', 'bad') : badge('ready', 'good')},
      {name: 'Host', of: p => p.host}, {name: 'Process', num: true, of: p => String(p.pid)},
      {name: 'Version', of: p => p.version},
      {name: 'Up', num: true, of: p => duration((state.at - p.startedAt) / 1000)},
      {name: 'Partitions', of: p => Object.entries(p.partitions).filter(([, n]) => n > 0)
        .map(([topic, n]) => `${topic.split('.').slice(1).join('.')} ${n}`).join(', ') || '–'},
      {name: 'CPU', num: true, of: p => percent(p.cpu)}, {name: 'Memory', num: true, of: p => bytes(p.memory)},
    ], state.processes, 'No process reports. They do on a topic that `fanfare topics create` makes.'));
  });
  signal.addEventListener('abort', end);
}

function showFindings(element, state) {
  const list = state.findings.map(({level, text, remedy}) => h('li', {class: `finding ${level}`},
    badge(...levels[level]), h('b', {}, text), h('p', {}, remedy)));
  const fine = h('li', {class: 'finding fine'}, badge('All well', 'good'),
    h('b', {}, 'Nothing is wrong now.'),
    h('p', {}, 'All processes are ready, all circuits are closed, and nothing waits for long.'));
  fill(element, h('ul', {class: 'findings', 'aria-label': 'Problems and their remedies'},
    list.length ? list : fine));
}

function outcomes(state) {
  const total = Map.groupBy(state.outcomes, outcome => outcome.platform);
  return card('Outcomes, last 15 minutes', table('Outcomes by platform and reason', [
    {name: 'Platform', of: o => platformName(o.platform)},
    {name: 'Outcome', of: o => badge(o.outcome, o.outcome === 'delivered' ? 'good' : 'bad')},
    {name: 'Reason', of: o => o.reason || '–'},
    {name: 'Count', num: true, of: o => count(o.quarterHour)},
    {name: 'Share', num: true, of: o => percent(o.quarterHour
      / total.get(o.platform).reduce((sum, other) => sum + other.quarterHour, 0))},
    {name: 'Now', num: true, of: o => rate(o.perSecond) + ' /s'},
  ], state.outcomes, 'No push was answered in the last 15 minutes.'));
}

function waiting(state) {
  return card('Waiting in Kafka', table('Records that wait, by topic', [
    {name: 'Topic', of: w => w.topic}, {name: 'Role', of: w => w.role},
    {name: 'Records', num: true, of: w => count(w.records)},
    {name: 'Oldest', num: true, of: w => w.oldestSeconds > 0 ? duration(w.oldestSeconds) : '–'},
  ], state.waiting, 'No consumer reports.'));
}

function services(state) {
  const circuits = [['closed', 'good'], ['half-open', 'warn'], ['open', 'bad']];
  return card('Push services', table('Circuits', [
    {name: 'Platform', of: c => platformName(c.platform)},
    {name: 'Circuit', of: c => badge(...circuits[c.state])},
    {name: 'Workers', num: true, of: c => String(c.workers)},
    {name: 'Credential', of: c => expiry(state, c.platform)},
  ], state.circuits, 'No worker reports a push service.'),
  state.expiries.filter(e => e.subject === 'certificate').map(e =>
    h('p', {class: 'muted'}, `The listener's certificate expires on ${time(e.expiresAt)}.`)));
}

function expiry(state, platform) {
  const found = state.expiries.find(e => e.subject === platform);
  return found ? `until ${time(found.expiresAt)}` : 'does not expire';
}
