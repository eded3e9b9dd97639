// The whole run at a glance: a lane for each part of the world, with its troubles and its load.

import {h, s, fill} from './dom.js';
import {run, parts, partsWith, byName, troubles, loads, rates, open, violations, timeOf} from './trace.js';

/** A moment as minutes, seconds and, with digits, their fraction. */
export function timecode(moment, digits = 0) {
  const unit = 10 ** digits, all = Math.floor(moment / 1e6 * unit + 1e-6);
  const seconds = Math.floor(all / unit) % 60, minutes = Math.floor(all / unit / 60);
  const fraction = digits ? '.' + String(all % unit).padStart(digits, '0') : '';
  return `${minutes}:${String(seconds).padStart(2, '0')}${fraction}`;
}

/** When each aspect of a part is in trouble. */
const spansOf = part => [...part.aspects].flatMap(([aspect, history]) =>
  troubles(history).map(span => ({...span, aspect, part: part.name})));

/**
 * The lanes: {title, names: of the parts, from, until, load: [[time, count]], colour, spans}.
 * A process and a push service have one each, other parts one together for each aspect.
 */
export const lanes = (() => {
  const whole = {from: 0, until: run.until, load: [], spans: [], names: []};
  const found = [{...whole, title: 'sends open', load: open, colour: 1}];
  for (const part of partsWith('process')) {
    const load = loads(part.name);
    if (load.length === 0) continue;
    const {times, states} = part.aspects.get('process');
    const end = states.findIndex(state => /dead|ended/.test(state.text));
    const until = end < 0 ? run.until : times[end];
    const spans = spansOf(part).filter(span => span.from < until)
      .map(span => ({...span, until: Math.min(span.until, until)}));
    found.push({title: part.name, names: [part.name], from: times[0], until, load, colour: 2, spans,
      isDead: end >= 0 && states[end].isTrouble});
  }
  for (const part of partsWith('service').sort(byName)) {
    found.push({...whole, title: part.name, names: [part.name], load: rates('delivered', part.name), colour: 3,
      spans: spansOf(part)});
  }
  const others = [...parts.values()].filter(part => !part.aspects.has('process') && !part.aspects.has('service'));
  for (const [aspect, spans] of Map.groupBy(others.flatMap(spansOf), span => span.aspect)) {
    found.push({...whole, title: aspect, names: spans.map(span => span.part), colour: 4, spans: spans.map(span =>
      ({...span, text: span.part === aspect ? span.text : `${span.part.replace(/^.*?\./, '')} ${span.text}`}))});
  }
  return found;
})();

const height = 26, gap = 7, top = 22;

/** The drawing. Calls `onMove` with the moment that the visitor points at. */
export class Lanes {
  constructor(onMove) {
    this.onMove = onMove;
    this.named = new Set();
    this.drawing = h('div', {});
    this.element = h('div', {class: 'lanes', role: 'img', tabindex: '-1', 'aria-label': this.label(),
      onpointerdown: event => this.point(event),
      onpointermove: event => event.buttons && this.point(event)}, this.drawing);
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  label() {
    const troubled = lanes.filter(lane => lane.spans.length || lane.isDead).map(lane => `${lane.title} ` + [
      ...lane.spans.map(span => `${span.text} at ${timecode(span.from)}`),
      ...lane.isDead ? [`dies at ${timecode(lane.until)}`] : []].join(', '));
    return `The run of ${timecode(run.until)} minutes. ${troubled.join('; ')}`;
  }

  draw() {
    const width = this.element.clientWidth;
    if (!width) return;
    const left = width < 600 ? 74 : 104, right = width - 10;
    this.x = moment => left + moment / Math.max(1, run.until) * (right - left);
    this.scale = {left, right};
    const bottom = top + lanes.length * (height + gap), drawn = [];
    this.bottom = bottom;
    drawn.push(s('defs', {}, s('pattern', {id: 'hatch', width: 6, height: 6, patternUnits: 'userSpaceOnUse',
      patternTransform: 'rotate(45)'}, s('rect', {class: 'hatch', width: 2.5, height: 6}))));
    const step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 3600, 7200, 21600, 86400]
      .find(seconds => run.until / 1e6 / seconds <= (right - left) / 70) ?? 1e6;
    for (let second = 0; second <= run.until / 1e6; second += step) {
      const x = this.x(second * 1e6);
      drawn.push(s('line', {class: 'rule', x1: x, x2: x, y1: top - 4, y2: bottom}),
        this.text(timecode(second * 1e6), x, bottom + 14, 'tick', 'middle'));
    }
    lanes.forEach((lane, place) => drawn.push(this.lane(lane, top + place * (height + gap))));
    const healed = this.x(run.faultsEnd);
    if (run.counts.faults) {
      drawn.push(s('line', {class: 'healed', x1: healed, x2: healed, y1: 14, y2: bottom}),
        this.text('faults end', healed - 5, 11, 'tick', 'end'));
    }
    for (const index of violations) {
      const x = this.x(timeOf(index));
      drawn.push(s('line', {class: 'broken', x1: x, x2: x, y1: 12, y2: bottom}),
        s('path', {class: 'broken', d: `M${x} 2l5 5l-5 5l-5 -5Z`}));
    }
    this.head = s('g', {class: 'head'}, s('line', {x1: 0, x2: 0, y1: 10, y2: bottom}),
      s('path', {d: 'M-5 4h10v6l-5 6l-5 -6Z'}));
    fill(this.drawing, s('svg', {viewBox: `0 0 ${width} ${bottom + 20}`, width, height: bottom + 20,
      'aria-hidden': 'true'}, ...drawn, this.head));
    if (this.moment !== undefined) this.mark(this.moment);
  }

  text(content, x, y, name, anchor = 'start') {
    const text = s('text', {class: name, x, y, 'text-anchor': anchor});
    text.textContent = content;
    return text;
  }

  lane(lane, y) {
    const {left} = this.scale, from = this.x(lane.from), until = this.x(lane.until);
    const isNamed = lane.names.some(name => this.named.has(name));
    const group = s('g', {class: 'lane s' + lane.colour + (isNamed ? ' named' : '')});
    group.append(this.text(lane.title, left - 10, y + height / 2 + 4, 'name', 'end'),
      s('rect', {class: 'life', x: from, y, width: Math.max(1, until - from), height, rx: 4}));
    const most = Math.max(1, ...lane.load.map(([, count]) => count));
    if (lane.load.length) {
      let path = `M${from} ${y + height}`, before = y + height;
      for (const [time, count] of lane.load) {
        const x = this.x(time), level = y + height - Math.sqrt(count / most) * (height - 3);
        path += `L${x.toFixed(1)} ${before.toFixed(1)}L${x.toFixed(1)} ${level.toFixed(1)}`;
        before = level;
      }
      const end = Math.min(until, this.x(lane.load.at(-1)[0] + run.interval * 1e6));
      group.append(s('path', {class: 'load', d: `${path}L${end} ${before}L${end} ${y + height}Z`}));
    }
    lane.spans.forEach((span, place) => group.append(...this.span(span, y, lane.spans[place - 1]?.from === span.from)));
    if (lane.isDead) {
      group.append(s('path', {class: 'death', d: `M${until - 5} ${y + height / 2 - 5}l10 10m0 -10l-10 10`}));
    }
    return group;
  }

  /** One trouble. Of several that begin at the same time one has words. */
  span({from, until, text, aspect}, y, isFurther) {
    const x = this.x(from), width = Math.max(2, this.x(until) - x);
    const isClock = aspect === 'clock', isFrozen = /frozen/.test(text);
    const drawn = [s('rect', {class: isClock ? 'skew' : isFrozen ? 'frozen' : 'trouble', x, width, rx: 3,
      y: isClock ? y + height - 3 : y, height: isClock ? 3 : height})];
    const words = (['process', 'service', 'clock'].includes(aspect) || text.includes(aspect) ? '' : aspect + ' ')
      + text.replace(/^is | for \d+ ms$/g, '');
    if (!isClock && !isFurther && width > words.length * 6.4 + 8) drawn.push(this.text(words, x + 5, y + height / 2 + 4, 'words'));
    return drawn;
  }

  /** Moves the line of the present moment. */
  mark(moment) {
    this.moment = moment;
    this.head?.setAttribute('transform', `translate(${this.x(moment)} 0)`);
  }

  /** Makes parts stand out. */
  emphasize(named) {
    this.named = named;
    this.draw();
  }

  point(event) {
    const {left, right} = this.scale;
    const place = event.clientX - this.element.getBoundingClientRect().left;
    this.onMove(Math.max(0, Math.min(1, (place - left) / (right - left))) * run.until);
  }
}
