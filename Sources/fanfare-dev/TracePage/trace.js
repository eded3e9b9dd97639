// The recorded run, and its state at any moment. Times are microseconds since it began.

export const run = JSON.parse(document.getElementById('data').textContent);
const {words, kinds} = run;

/** For each kind: its name, and its sentence in pieces: text, {field} in between. */
for (const kind of kinds) {
  kind.fields = [...kind.sentence.matchAll(/\{(\w+)\}/g)].map(found => found[1]);
  kind.pieces = kind.sentence.split(/\{\w+\}/);
}

/** The time, the kind's number and the place of the first field of each event. */
const times = new Float64Array(run.events.time.length), starts = new Int32Array(times.length);
let now = 0, start = 0;
run.events.time.forEach((delta, index) => {
  times[index] = now += delta;
  starts[index] = start;
  start += kinds[run.events.kind[index]].fields.length;
});

/** The first of the ascending values that is greater. */
export function after(values, value) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

const lists = {send: run.sends, push: run.pushes};

/** The event of a number: {index, time, kind, fields: values in the order of the sentence}. */
export function event(index) {
  const kind = kinds[run.events.kind[index]];
  const fields = kind.fields.map((name, place) => {
    const value = run.events.fields[starts[index] + place];
    return name === 'number' ? value : (lists[name] ?? words)[value];
  });
  return {index, time: times[index], kind, fields};
}

/** The event as a sentence. */
export const sentence = ({kind, fields}) =>
  kind.pieces.reduce((text, piece, place) => text + fields[place - 1] + piece);

/** How many events there are up to a moment. */
export const eventsUntil = moment => after(times, moment);
export const eventCount = times.length;
export const kindOf = index => kinds[run.events.kind[index]].name;
export const timeOf = index => times[index];

// Parts of the world and their states.

/** By name: {name, aspects: Map of an aspect to {times, states: [{text, isTrouble}]}}. */
export const parts = new Map();
/** By topic and number: {times, owners}. */
const owners = new Map();
export const faults = [], violations = [];
/** By number in the lists: numbers of events, and the sends of pushes. */
const eventsOfSend = new Map(), eventsOfPush = new Map(), sendOfPush = new Map();
/** How many sends are accepted and have no end, at each change: [[time, count]]. */
export const open = [];

const listed = (map, key, make) => map.get(key) ?? map.set(key, make()).get(key);
const list = () => [];

(() => {
  const accepted = new Set(), ended = new Set();
  let waiting = 0;
  const change = (time, by) => open.push([time, waiting += by]);
  for (let index = 0; index < times.length; index += 1) {
    const kind = kinds[run.events.kind[index]];
    const value = place => run.events.fields[starts[index] + place];
    kind.fields.forEach((name, place) => {
      if (name === 'send') listed(eventsOfSend, value(place), list).push(index);
      if (name === 'push') listed(eventsOfPush, value(place), list).push(index);
    });
    switch (kind.name) {
      case 'trouble': case 'well': {
        const [part, aspect, text] = [0, 1, 2].map(place => words[value(place)]);
        const {aspects} = listed(parts, part, () => ({name: part, aspects: new Map()}));
        const history = listed(aspects, aspect, () => ({times: [], states: []}));
        history.times.push(times[index]);
        history.states.push({text, isTrouble: kind.name === 'trouble'});
        if (kind.name === 'trouble') faults.push(index);
        break;
      }
      case 'assigned': {
        const [topic, owner, added, revoked] = [0, 1, 2, 3].map(place => words[value(place)]);
        for (const [numbers, next] of [[revoked, null], [added, owner]]) {
          for (const number of JSON.parse(numbers)) {
            const history = listed(owners, `${topic}[${number}]`, () => ({times: [], owners: []}));
            history.times.push(times[index]);
            history.owners.push(next);
          }
        }
        break;
      }
      case 'pushed': sendOfPush.set(value(1), value(2)); break;
      case 'violation': violations.push(index); break;
      case 'accepted':
        accepted.add(value(0));
        if (!ended.has(value(0))) change(times[index], 1);
        break;
      case 'ended':
        ended.add(value(0));
        if (accepted.has(value(0))) change(times[index], -1);
        break;
    }
  }
})();

/** The states of a part, one for each aspect: [{aspect, text, isTrouble}]. */
export function states(part, moment) {
  const found = [];
  for (const [aspect, {times, states}] of part.aspects) {
    const place = after(times, moment) - 1;
    if (place >= 0) found.push({aspect, ...states[place]});
  }
  return found;
}

/** The spans in which an aspect is in trouble: [{from, until, text}]. */
export function troubles({times, states}) {
  const spans = [];
  states.forEach(({text, isTrouble}, place) => {
    if (isTrouble) spans.push({from: times[place], until: times[place + 1] ?? run.until, text});
  });
  return spans;
}

export const byName = (one, other) => one.name.localeCompare(other.name, 'en', {numeric: true});
export const partsWith = aspect => [...parts.values()].filter(part => part.aspects.has(aspect));

// Partitions.

/** By topic: its partitions in their order, {name, number, log}. */
export const topics = new Map();
const inOrder = log => {
  const name = words[log.partition];
  return (name.includes('.sends[') ? '0' : name.includes('.segments[') ? '1' : '2') + name;
};
for (const log of run.logs.sort((one, other) => inOrder(one).localeCompare(inOrder(other), 'en', {numeric: true}))) {
  const name = words[log.partition], [, topic, number] = name.match(/^(.*)\[(\d+)\]$/);
  listed(topics, topic, list).push({name, number: Number(number), log});
}

/** How far a partition reaches, is committed, and whose it is. */
export function positions({name, log}, moment) {
  const place = after(log.second, moment / 1e6) - 1;
  // Segments belong to the process that has the partition of sends with their number.
  const owned = owners.get(name) ?? owners.get(name.replace('.segments[', '.sends['));
  return {
    end: place < 0 ? 0 : log.end[place], committed: place < 0 ? 0 : log.committed[place],
    owner: owned?.owners[after(owned.times, moment) - 1] ?? null,
  };
}

/** The numbers of the partitions of a topic that a member has. */
export function owned(topic, member, moment) {
  return [...owners].filter(([name, {times, owners}]) =>
    name.startsWith(topic + '[') && owners[after(times, moment) - 1] === member)
    .map(([name]) => Number(name.slice(topic.length + 1, -1))).sort((one, other) => one - other);
}

// Counts.

/** By process: the times of its samples, and their counts by name. */
const samples = new Map();
run.samples.tick.forEach((tick, index) => {
  const process = listed(samples, words[run.samples.process[index]], () => ({times: [], counts: []}));
  const counts = {}, values = run.samples.values[index];
  for (let place = 0; place < values.length; place += 2) counts[words[values[place]]] = values[place + 1];
  process.times.push(tick * run.samples.every);
  process.counts.push(counts);
});

/** What waits in a process: counts by name; null before its first sample. */
export function waits(process, moment) {
  const known = samples.get(process);
  return known?.counts[after(known.times, moment) - 1] ?? null;
}

/** The number of pushes that wait in a process, or are in flight, at each sample: [[time, count]]. */
export function loads(process) {
  const known = samples.get(process);
  return (known?.times ?? []).map((time, place) => [time, Object.entries(known.counts[place])
    .reduce((sum, [name, count]) => /^(bytes|items\/.*|.*\/stopped)$/.test(name) ? sum : sum + count, 0)]);
}

/** Events of a kind in each interval, of one part: [[time, count per second]]. */
export function rates(kind, part) {
  const found = run.rates.find(rate => kinds[rate.kind].name === kind && words[rate.part] === part);
  return (found?.counts ?? []).map((count, place) => [place * run.interval * 1e6, count / run.interval]);
}

// Sends and pushes.

/** The send or push that a text names, or whose id begins so: {send, push}, numbers in the lists. */
export function subjectOf(text) {
  const ids = text.toLowerCase().match(/[0-9a-f]{8}[0-9a-f-]*/g) ?? [];
  const subject = {send: -1, push: -1};
  for (const id of ids) {
    if (subject.push < 0) subject.push = run.pushes.findIndex(known => known.startsWith(id));
    if (subject.send < 0) subject.send = run.sends.findIndex(known => known.startsWith(id));
  }
  if (subject.send < 0) subject.send = sendOfPush.get(subject.push) ?? -1;
  return subject.send < 0 && subject.push < 0 ? null : subject;
}

/** The numbers of the events of a send, or of one of its pushes and its send. */
export function history({send, push}) {
  const isOthers = index => push >= 0 && kindOf(index) === 'pushed';
  const found = new Set((eventsOfSend.get(send) ?? []).filter(index => !isOthers(index)));
  for (const [other, owner] of sendOfPush) {
    if (owner === send && (push < 0 || other === push)) for (const index of eventsOfPush.get(other)) found.add(index);
  }
  const id = run.pushes[push] ?? run.sends[send];
  for (const index of violations) if (event(index).fields[0].includes(id)) found.add(index);
  return [...found].sort((one, other) => one - other);
}

/** The names of the parts and partitions that a text speaks of. */
export function named(text) {
  const found = new Set([...text.matchAll(/[\w.]+(\[\d+\])?/g)].map(match => match[0]));
  return new Set([...parts.keys(), ...owners.keys()].filter(name => found.has(name)));
}
