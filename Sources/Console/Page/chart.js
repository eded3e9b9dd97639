// Charts over the last fifteen minutes, as SVG.

import {h, s, fill, rate, timeOfDay, minuteOfDay} from './dom.js';

/** The seconds on show: fifteen minutes, less while the server does not know as much. */
const spanOf = length => [120, 300].find(seconds => length <= seconds) ?? 900;

/** The smallest round number that is not less. */
function ceiling(value) {
  if (value <= 1) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map(step => step * unit).find(step => step >= value);
}

/** A line with its area. The last value is at the right edge. */
function shape(values, x, y, bottom) {
  let line = '';
  for (let index = 0; index < values.length; index += 1) {
    line += (index ? 'L' : 'M') + x(index).toFixed(1) + ' ' + y(values[index]).toFixed(1);
  }
  return {line, area: line && `${line}L${x(values.length - 1)} ${bottom}L${x(0)} ${bottom}Z`};
}

/**
 * A chart with axes and a reading at the pointer, or moved by the arrow keys.
 * series: [{name, key, number: 1…4}]; key names an array of the history.
 */
export class Chart {
  constructor(label, series) {
    this.label = label;
    this.series = series;
    this.drawing = h('div', {});
    this.tip = h('div', {class: 'tip', hidden: true});
    this.legend = h('ul', {class: 'legend'});
    this.element = h('div', {class: 'chart', tabindex: '0', role: 'img',
      onpointermove: event => this.point(event), onpointerleave: () => this.leave(),
      onblur: () => this.leave(), onkeydown: event => this.step(event)}, this.drawing, this.tip);
    this.at = null;
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  show(history) {
    this.history = history;
    this.draw();
  }

  draw() {
    const width = Math.max(280, this.element.clientWidth), height = width < 500 ? 190 : 230;
    const {history, series} = this;
    if (!history || !this.element.isConnected) return;
    const left = 44, right = width - 8, top = 10, bottom = height - 24;
    const length = history[series[0].key].length, span = spanOf(length);
    let most = 0;
    for (const {key} of series) for (const value of history[key]) if (value > most) most = value;
    const limit = ceiling(most);
    const x = index => right - (length - 1 - index) / (span - 1) * (right - left);
    const y = value => bottom - value / limit * (bottom - top);
    this.geometry = {left, right, width, length, span};
    const parts = [];
    for (const share of [0, .25, .5, .75, 1]) {
      parts.push(s('line', {class: 'rule', x1: left, x2: right, y1: y(limit * share), y2: y(limit * share)}));
      const text = s('text', {x: left - 8, y: y(limit * share) + 4, 'text-anchor': 'end'});
      text.textContent = rate(limit * share);
      parts.push(text);
    }
    const steps = width < 500 ? 3 : 5;
    for (let step = 0; step <= steps; step += 1) {
      const text = s('text', {x: right - step / steps * (right - left), y: height - 6,
        'text-anchor': step === 0 ? 'end' : step === steps ? 'start' : 'middle'});
      const seconds = span / steps * step;
      text.textContent = step === 0 ? 'now' : (span < 900 ? timeOfDay : minuteOfDay)(history.until - seconds * 1000);
      parts.push(text);
    }
    for (const {key, number} of series) {
      const {line, area} = shape(history[key], x, y, bottom);
      if (number === 1) parts.push(s('path', {class: 'area s1', d: area}));
      parts.push(s('path', {class: `line s${number}`, d: line}));
    }
    if (this.at !== null) {
      const place = x(length - 1 - this.at);
      parts.push(s('line', {class: 'cross', x1: place, x2: place, y1: top, y2: bottom}));
    }
    fill(this.drawing, s('svg', {viewBox: `0 0 ${width} ${height}`, width, height, 'aria-hidden': 'true'}, ...parts));
    fill(this.legend, series.map(({name, key, number}) => h('li', {class: `s${number}`},
      h('i', {class: 'key', 'aria-hidden': 'true'}), name, ' ', h('b', {}, rate(history[key].at(-1) ?? 0)),
      h('span', {}, ' /s'))));
    this.element.setAttribute('aria-label', `${this.label}, last ${span / 60} minutes. Now: `
      + series.map(({name, key}) => `${name} ${rate(history[key].at(-1) ?? 0)} per second`).join(', '));
    this.read();
  }

  /** The pointer or a key chooses a second, counted from now. */
  choose(at) {
    this.at = at === null ? null : Math.max(0, Math.min(at, this.geometry.length - 1));
    this.draw();
  }

  point(event) {
    if (!this.geometry) return;
    const {left, right, span} = this.geometry;
    const place = event.clientX - this.element.getBoundingClientRect().left;
    this.choose(Math.round((right - place) / (right - left) * (span - 1)));
  }

  leave() { if (this.at !== null) this.choose(null); }

  step(event) {
    const steps = {ArrowLeft: 5, ArrowRight: -5, Home: 900, End: -900};
    if (!(event.key in steps) || !this.geometry) return;
    event.preventDefault();
    this.choose((this.at ?? 0) + steps[event.key]);
  }

  read() {
    this.tip.hidden = this.at === null;
    if (this.at === null) return;
    const {history} = this, {left, right, width, length, span} = this.geometry;
    fill(this.tip, h('b', {}, timeOfDay(history.until - this.at * 1000)),
      this.series.map(({name, key, number}) => h('div', {class: `s${number}`},
        h('span', {}, h('i', {class: 'key', 'aria-hidden': 'true'}), name),
        h('b', {}, rate(history[key][length - 1 - this.at] ?? 0)))));
    const place = right - this.at / (span - 1) * (right - left);
    // Through the object model: the policy forbids style attributes.
    this.tip.style.left = place < width / 2 ? `${place + 12}px` : 'auto';
    this.tip.style.right = place < width / 2 ? 'auto' : `${width - place + 12}px`;
  }
}

/** A small line without axes. */
export function sparkline(values, number) {
  const width = 120, height = 28, recent = values.slice(-300), last = Math.min(300, spanOf(values.length)) - 1;
  const limit = Math.max(...recent, 1e-9);
  const {line, area} = shape(recent, index => width - (recent.length - 1 - index) / last * width,
    value => height - 2 - value / limit * (height - 4), height);
  return s('svg', {viewBox: `0 0 ${width} ${height}`, width: '100%', height, preserveAspectRatio: 'none',
    'aria-hidden': 'true'},
  s('path', {class: `area s${number}`, d: area}), s('path', {class: `line s${number}`, d: line}));
}
