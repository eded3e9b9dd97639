// The page: time and its controls, broken promises, what happens, and the history of one send.

import {h, fill, card, badge, count} from './dom.js';
import {run, event, sentence, eventsUntil, eventCount, kindOf, timeOf, faults, violations} from './trace.js';
import {subjectOf, history, named} from './trace.js';
import {Lanes, timecode} from './lanes.js';
import {processes, partitions, services} from './waits.js';

const main = document.getElementById('main');
let present = 0, isPlaying = false, speed = 5, chosen = null, emphasis = new Set(), filter = 'most', drawnAt = 0;

// Elements.

const lanesView = new Lanes(time => move(time));
const slider = h('input', {type: 'range', id: 'time', min: 0, max: Math.ceil(run.until / 1000), 'aria-label': 'Time',
  oninput: () => move(slider.valueAsNumber * 1000)});
const readout = h('output', {class: 'readout', for: 'time'});
const told = h('p', {class: 'told', role: 'status'});
const play = h('button', {class: 'primary', id: 'play', title: 'Space', onclick: () => toggle()}, 'Play');
const speeds = h('select', {'aria-label': 'Speed', onchange: () => { speed = Number(speeds.value); }},
  [0.1, 1, 5, 20].map(value => h('option', {value, selected: value === speed}, `${value}×`)));
const state = {processes: h('div', {}), partitions: h('div', {}), services: h('div', {})};
const happening = h('ol', {class: 'events', 'aria-label': 'Events around this moment'});
const broken = h('div', {});
const story = h('section', {class: 'card story', id: 'story', hidden: true, 'aria-label': 'History'});
const search = h('input', {type: 'search', placeholder: 'id of a send or push', 'aria-label': 'Id of a send or push'});
const filters = h('select', {'aria-label': 'Events', onchange: () => { filter = filters.value; show(); }},
  Object.entries({most: 'Without single pushes', all: 'All events', faults: 'Faults and assignments'}).map(
    ([value, name]) => h('option', {value}, name)));

function jumpButton(name, key, list, step) {
  return h('button', {class: 'quiet', title: `Key ${key}`, disabled: list.length === 0,
    onclick: () => jump(list, step)}, name);
}

// Time.

function go(time) {
  present = Math.max(0, Math.min(run.until, time));
  show();
}

/** Goes to a moment that is no event, and clears the message about the last event. */
function move(time) {
  tell('');
  go(time);
}

function show() {
  const now = performance.now();
  lanesView.mark(present);
  slider.value = Math.round(present / 1000);
  slider.setAttribute('aria-valuetext', timecode(present, 1));
  fill(readout, h('b', {}, timecode(present, 3)), ` of ${timecode(run.until)}`);
  // While it plays, tables that change sixty times a second cannot be read.
  if (isPlaying && now - drawnAt < 100) return;
  drawnAt = now;
  fill(state.processes, processes(present, emphasis));
  fill(state.partitions, partitions(present, emphasis));
  fill(state.services, services(present, emphasis));
  showEvents();
}

/** Goes to the next of some events, or the one before, and says which it is. */
function jump(list, step) {
  const ahead = step > 0
    ? list.find(index => timeOf(index) > present) : list.findLast(index => timeOf(index) < present);
  if (ahead === undefined) return tell(step > 0 ? 'There is none later.' : 'There is none earlier.');
  if (kindOf(ahead) === 'violation') return choose(ahead);
  emphasis = named(sentence(event(ahead)));
  lanesView.emphasize(emphasis);
  go(timeOf(ahead));
  tell(`${timecode(present, 3)} ${sentence(event(ahead))}`);
}

const tell = text => { told.textContent = text; };

function toggle() {
  isPlaying = !isPlaying;
  play.textContent = isPlaying ? 'Pause' : 'Play';
  if (!isPlaying) return show();
  if (present >= run.until) present = 0;
  let before = performance.now();
  const frame = now => {
    if (!isPlaying) return;
    const time = present + (now - before) * 1000 * speed;
    before = now;
    if (time >= run.until) toggle();
    go(time);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  if (event.target.tagName === 'INPUT' && event.target !== slider) return;
  const leap = event.shiftKey ? 10e6 : 1e6;
  const acts = {
    ' ': () => toggle(), ArrowLeft: () => move(present - leap), ArrowRight: () => move(present + leap),
    Home: () => move(0), End: () => move(run.until), f: () => jump(faults, 1), F: () => jump(faults, -1),
    v: () => jump(violations, 1), V: () => jump(violations, -1),
    '.': () => go(timeOf(Math.min(eventCount - 1, eventsUntil(present)))),
    ',': () => go(timeOf(Math.max(0, eventsUntil(present - 1) - 1))),
  };
  if (!(event.key in acts) || (event.key === ' ' && event.target.tagName === 'BUTTON')) return;
  event.preventDefault();
  acts[event.key]();
});

// Events.

const passes = {
  all: () => true, most: kind => kind !== 'pushed' && kind !== 'delivered',
  faults: kind => ['trouble', 'well', 'assigned', 'violation', 'note'].includes(kind),
};

function showEvents() {
  const here = eventsUntil(present), shown = [];
  for (let index = here - 1, left = 14; index >= 0 && left > 0; index -= 1) {
    if (passes[filter](kindOf(index))) { shown.unshift(index); left -= 1; }
  }
  for (let index = here, left = 5; index < eventCount && left > 0; index += 1) {
    if (passes[filter](kindOf(index))) { shown.push(index); left -= 1; }
  }
  fill(happening, shown.map(index => eventLine(index, index >= here)));
}

function eventLine(index, isLater) {
  const one = event(index), text = sentence(one);
  const about = one.kind.fields.some(name => name === 'send' || name === 'push');
  return h('li', {class: `${one.kind.name}${isLater ? ' later' : ''}`},
    h('button', {class: 'at', title: 'Go to this moment', onclick: () => go(one.time)}, timecode(one.time, 3)),
    about ? h('button', {class: 'text', title: 'Show its history', onclick: () => tellStory(text)}, text)
      : h('span', {class: 'text'}, text));
}

// Broken promises.

function showBroken() {
  fill(broken, h('ul', {class: 'findings', 'aria-label': 'Broken promises'}, violations.length === 0
    ? h('li', {class: 'finding fine'}, badge('All well', 'good'), h('b', {}, 'Every promise was kept.'),
      h('p', {}, `${count(run.counts.checks)} checks in ${timecode(run.until)} minutes of virtual time, with `
        + `${count(run.counts.faults)} faults.`))
    : violations.map(index => h('li', {class: 'finding critical' + (index === chosen ? ' chosen' : '')},
      badge(timecode(timeOf(index), 3), 'bad'), h('b', {}, event(index).fields[0]),
      h('p', {}, h('button', {class: 'quiet', 'aria-pressed': String(index === chosen), onclick: () => choose(index)},
        'Show'))))));
}

/** Goes to a broken promise, with the history of what it names. */
function choose(index) {
  chosen = index;
  const text = event(index).fields[0];
  showBroken();
  tellStory(text);
  go(timeOf(index));
  tell(`${timecode(present, 3)} broken promise: ${text}`);
}

/** Shows the history of the send and push that a text names, and makes the parts that it speaks of stand out. */
function tellStory(text) {
  const subject = subjectOf(text), list = subject ? history(subject) : [];
  emphasis = named([text, ...list.map(index => sentence(event(index)))].join(' '));
  lanesView.emphasize(emphasis);
  story.hidden = list.length === 0;
  if (subject) {
    const most = 200, id = subject.push >= 0 ? run.pushes[subject.push] : run.sends[subject.send];
    fill(story, h('div', {class: 'head'}, h('h2', {}, subject.push >= 0 ? 'One push' : 'One send'),
      h('span', {class: 'id'}, id), h('button', {class: 'quiet', onclick: () => closeStory()}, 'Close')),
    subject.push >= 0 && subject.send >= 0 && h('p', {}, 'of send ', h('button', {class: 'text id',
      onclick: () => tellStory(run.sends[subject.send])}, run.sends[subject.send])),
    h('ol', {class: 'timeline', 'aria-label': 'History'}, list.slice(0, most).map(index => storyLine(index))),
    list.length > most ? h('p', {class: 'muted'}, `${count(list.length - most)} further events are not shown.`) : null);
  }
  show();
}

function storyLine(index) {
  const one = event(index);
  // Its own ids are in the heading.
  const text = sentence(one).replace(/ of [0-9a-f]{8}-[0-9a-f-]{27}/, '')
    .replace(/([0-9a-f]{8})-[0-9a-f-]{27}/g, (_, start) => one.kind.fields.includes('push') ? `push ${start}…` : 'it');
  return h('li', {class: one.kind.name},
    h('button', {class: 'at', onclick: () => go(one.time)}, timecode(one.time, 3)), ' ', text);
}

function closeStory() {
  story.hidden = true;
  emphasis = new Set();
  chosen = null;
  lanesView.emphasize(emphasis);
  showBroken();
  show();
}

// The whole.

const sampled = Object.entries(run.share).filter(([, one]) => one > 1);
fill(document.getElementById('what'), h('b', {}, run.profile), ` · seed ${run.seed} · `,
  `${count(run.counts.sends)} sends, ${count(run.counts.pushes)} pushes (${count(run.counts.repeated)} repeated), `
  + `${count(run.counts.deferred)} deferred, ${count(run.counts.faults)} faults`);
fill(document.getElementById('verdict'), violations.length
  ? badge(`${violations.length} broken`, 'bad') : badge('promises kept', 'good'));
document.title = `${run.profile} ${run.seed} · Fanfare simulation`;
fill(main, h('h1', {class: 'unseen'}, `Simulation of ${run.profile} with seed ${run.seed}`), broken,
  h('section', {class: 'card clock', 'aria-label': 'Time'},
    h('div', {class: 'controls'}, jumpButton('‹ Fault', 'Shift F', faults, -1), play,
      jumpButton('Fault ›', 'F', faults, 1), jumpButton('Broken promise ›', 'V', violations, 1), speeds, readout),
    lanesView.element, h('div', {class: 'slide'}, slider), told),
  h('div', {class: 'columns'},
    h('div', {class: 'stack'}, state.processes,
      h('section', {class: 'card'}, h('div', {class: 'head'}, h('h2', {}, 'Events'), filters,
        h('form', {onsubmit: event => { event.preventDefault(); tellStory(search.value); }}, search)), happening,
      sampled.length ? h('p', {class: 'muted'}, 'Of this run the page has one in '
        + sampled.map(([name, one]) => `${one} ${name}`).join(', one in ') + '; counts are those of all.') : null)),
    h('div', {class: 'stack'}, card('Partitions', state.partitions), card('Push services', state.services), story)),
  h('p', {class: 'muted keys'}, 'Keys: space plays; arrows move a second, with Shift ten; , and . an event; F and '
    + 'Shift F a fault; V a broken promise. '
    + `The same run: fanfare-dev simulate --profile ${run.profile} --seed ${run.seed} (digest ${run.digest}).`));
showBroken();
if (violations.length) choose(violations[0]);
else if (faults.length) jump(faults, 1);
else go(run.until / 2);
