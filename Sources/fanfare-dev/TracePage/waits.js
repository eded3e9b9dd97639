// The state of the world at one moment: processes and what waits in them, partitions, push services.

import {h, s, badge, count} from './dom.js';
import {partsWith, parts, byName, states, waits, owned, topics, positions, rates, run} from './trace.js';

/** The phases of items and pushes in the order in which they are shown. */
const phases = [
  'queued', 'checking', 'inFlight', 'resting', 'resolving', 'walking', 'dispatching', 'settling'];
const titles = {inFlight: 'in flight'};
const shortOf = topic => topic.replace(/^[^.]*\./, '');

/** One line: a bar of the counts of phases, and the counts in words. */
function line(name, counts, isStopped) {
  const entries = Object.entries(counts).sort(([one], [other]) => phases.indexOf(one) - phases.indexOf(other));
  const all = entries.reduce((sum, [, number]) => sum + number, 0);
  let x = 0;
  const bars = entries.map(([phase, number]) => {
    const bar = s('rect', {class: 'phase ' + phase, x, y: 0, width: number / all * 100, height: 6});
    x += number / all * 100;
    return bar;
  });
  return h('tr', {}, h('th', {scope: 'row'}, name), h('td', {class: 'num'}, h('b', {}, all ? count(all) : '–')),
    h('td', {}, all > 0 && s('svg', {viewBox: '0 0 100 6', preserveAspectRatio: 'none', class: 'bars',
      'aria-hidden': 'true'}, ...bars),
    h('span', {class: 'phases'}, entries.map(([phase, number]) => h('span', {},
      h('i', {class: 'key ' + phase, 'aria-hidden': 'true'}), `${count(number)} ${titles[phase] ?? phase}`)),
    isStopped && badge('circuit open', 'bad'))));
}

function stateBadges(part, moment) {
  const found = states(part, moment);
  const shown = found.filter(({aspect, isTrouble}) => aspect === 'process' || aspect === 'service' || isTrouble);
  return shown.map(({aspect, text, isTrouble}) => badge(
    (['process', 'service'].includes(aspect) ? '' : aspect + ' ') + text.replace(/^is | for \d+ ms$/g, ''),
    isTrouble ? (aspect === 'clock' ? 'warn' : 'bad') : /ended|to end/.test(text) ? '' : 'good'));
}

const isOver = (part, moment) =>
  states(part, moment).some(({aspect, text}) => aspect === 'process' && /dead|ended/.test(text));

function process(part, moment, named, main) {
  const counts = waits(part.name, moment) ?? {}, groups = new Map([['items', {}]]);
  for (const service of partsWith('service').sort(byName)) groups.set(service.name, {});
  for (const [name, number] of Object.entries(counts)) {
    const [group, phase] = name.split('/');
    if (phase && phase !== 'stopped') (groups.get(group) ?? groups.set(group, {}).get(group))[phase] = number;
  }
  const mine = owned(main, part.name, moment);
  return h('li', {class: 'card process' + (named.has(part.name) ? ' named' : '')},
    h('div', {class: 'head'}, h('h3', {}, part.name), h('span', {class: 'badges'}, stateBadges(part, moment))),
    h('p', {class: 'owned'},
      mine.length ? ['partitions ', mine.map(number => h('b', {}, number))] : 'no partitions'),
    h('table', {class: 'waits', 'aria-label': `Waits in ${part.name}`}, h('tbody', {},
      [...groups].map(([group, found]) => line(group, found, counts[`${group}/stopped`])))));
}

/** The processes that have begun: of those that have ended, the names. */
export function processes(moment, named) {
  const main = [...topics.keys()].find(topic => topic.endsWith('.sends'));
  const begun = partsWith('process').filter(part =>
    states(part, moment).length && (waits(part.name, run.until) || named.has(part.name)));
  const over = begun.filter(part => isOver(part, moment));
  return [
    h('ul', {class: 'processes', 'aria-label': 'Processes'}, begun.filter(part => !over.includes(part)).map(part =>
      process(part, moment, named, main))),
    over.length ? h('p', {class: 'over'}, over.map(part =>
      h('span', {class: named.has(part.name) && 'named'}, part.name, ' ', stateBadges(part, moment)))) : null,
  ];
}

/** For each partition of each topic: its owner, and how many of its records wait. */
export function partitions(moment, named) {
  const most = Math.max(0, ...[...topics.values()].map(list => list.length));
  const rows = [...topics].filter(([, list]) => list.some(({log}) => log.committed.some(offset => offset > 0)));
  if (rows.length === 0) return h('p', {class: 'empty'}, 'Nothing is committed in this run.');
  return h('div', {class: 'scroll'}, h('table', {class: 'partitions', 'aria-label': 'Partitions'},
    h('thead', {}, h('tr', {}, h('th', {scope: 'col'}, 'Topic'), h('th', {scope: 'col', class: 'num'}, 'Wait'),
      Array.from({length: most}, (_, number) => h('th', {scope: 'col'}, number)))),
    h('tbody', {}, rows.map(([topic, list]) => {
      const cells = new Map(list.map(partition => [partition.number, partition]));
      const all = list.reduce((sum, partition) => {
        const {end, committed} = positions(partition, moment);
        return sum + Math.max(0, end - committed);
      }, 0);
      return h('tr', {}, h('th', {scope: 'row'}, shortOf(topic)),
        h('td', {class: 'num'}, h('b', {}, all ? count(all) : '–')),
        Array.from({length: most}, (_, number) => cell(cells.get(number), moment, named)));
    }))));
}

function cell(partition, moment, named) {
  if (!partition) return h('td', {class: 'cell'}, '');
  const {end, committed, owner} = positions(partition, moment), lag = Math.max(0, end - committed);
  const part = parts.get(partition.name);
  const isLeaderless = part && states(part, moment).some(({isTrouble}) => isTrouble);
  const level = lag === 0 ? 0 : lag < 5 ? 1 : lag < 25 ? 2 : lag < 100 ? 3 : 4;
  const isLost = parts.has(owner) && isOver(parts.get(owner), moment);
  const told = `${partition.name}: ${committed} of ${end} committed, ${owner ? 'read by ' + owner : 'read by none'}`
    + (isLost ? ', which is over' : '')
    + (isLeaderless ? ', no leader' : '');
  return h('td', {class: `cell lag${level}` + (isLeaderless ? ' leaderless' : '')
    + (named.has(partition.name) ? ' named' : ''), title: told},
  h('b', {}, lag ? count(lag) : '·'), h('small', {class: isLost && 'lost'}, owner?.replace(/^worker/, 'w') ?? '–'));
}

/** Push services and the other parts of the world. */
export function services(moment, named) {
  const rows = partsWith('service').sort(byName).map(part => {
    let inFlight = 0, queued = 0;
    for (const process of partsWith('process')) {
      if (isOver(process, moment)) continue;
      const counts = waits(process.name, moment) ?? {};
      for (const [name, number] of Object.entries(counts)) {
        if (name === `${part.name}/inFlight`) inFlight += number;
        else if (name.startsWith(part.name + '/') && !name.endsWith('stopped')) queued += number;
      }
    }
    const perSecond = rates('delivered', part.name)[Math.floor(moment / 1e6 / run.interval)]?.[1] ?? 0;
    return h('tr', {class: named.has(part.name) && 'named'}, h('th', {scope: 'row'}, part.name),
      h('td', {}, h('span', {class: 'badges'}, stateBadges(part, moment))), h('td', {class: 'num'}, count(perSecond)),
      h('td', {class: 'num'}, count(inFlight)), h('td', {class: 'num'}, count(queued)));
  });
  const others = [...parts.values()].filter(part => !part.aspects.has('process') && !part.aspects.has('service'));
  const troubled = others.filter(part => states(part, moment).some(({isTrouble}) => isTrouble));
  return [
    h('div', {class: 'scroll'}, h('table', {'aria-label': 'Push services'},
      h('thead', {}, h('tr', {}, ['Service', 'State', 'Taken /s', 'In flight', 'Waiting'].map((name, place) =>
        h('th', {scope: 'col', class: place > 1 && 'num'}, name)))),
      h('tbody', {}, rows))),
    h('p', {class: 'others'}, troubled.length ? troubled.map(part => badge(
      part.name + ' ' + states(part, moment).map(({text}) => text).join(', '), 'bad'))
      : badge('registry and Kafka work', 'good')),
  ];
}
