// The frame of the page: log-in, navigation by the address's hash, and the live stream.

import {h, fill, toast, timeOfDay} from './dom.js';
import * as api from './api.js';
import * as overview from './overview.js';
import * as sends from './sends.js';
import * as broadcasts from './broadcasts.js';
import * as devices from './devices.js';
import * as letters from './letters.js';

const pages = {
  overview: {name: 'Overview', show: overview.show},
  sends: {name: 'Sends', show: sends.show},
  broadcasts: {name: 'Broadcasts', show: broadcasts.show},
  devices: {name: 'Devices', show: devices.show},
  letters: {name: 'Dead letters', show: letters.show},
  schedule: {name: 'Schedule', show: sends.showSchedule},
};

const main = document.getElementById('main');
const bar = document.getElementById('bar');
const live = document.getElementById('live');
/** Ends what the page on show has begun. */
let leave = null;
let stream = null;

function route() {
  const [path, query] = location.hash.slice(2).split('?');
  const [name, ...rest] = path.split('/').map(decodeURIComponent);
  return {name: name in pages ? name : 'overview', rest, query: new URLSearchParams(query)};
}

function show() {
  leave?.abort();
  leave = new AbortController();
  if (!api.session) return showLogIn();
  const {name, rest, query} = route();
  for (const link of document.querySelectorAll('#nav a')) {
    if (link.hash === '#/' + name) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  document.title = `${pages[name].name} · Fanfare operations`;
  fill(main);
  pages[name].show(main, {rest, query, signal: leave.signal});
  main.focus({preventScroll: true});
  scrollTo(0, 0);
}

function enter() {
  bar.hidden = false;
  fill(document.getElementById('nav'), Object.entries(pages).map(([name, page]) =>
    h('li', {}, h('a', {href: '#/' + name}, page.name))));
  const {user, hub} = api.session;
  document.getElementById('who').textContent = hub === 'default' ? user : `${user} · ${hub}`;
  stream = new AbortController();
  api.pulse.follow(stream.signal);
  show();
}

function showLogIn(message = '') {
  bar.hidden = true;
  document.title = 'Log in · Fanfare operations';
  const error = h('p', {class: 'error', role: 'alert'}, message);
  const user = h('input', {name: 'user', autocomplete: 'username', required: true, autocapitalize: 'none'});
  const password = h('input', {name: 'password', type: 'password', autocomplete: 'current-password', required: true});
  const key = h('input', {name: 'key', type: 'password', autocomplete: 'off'});
  const form = async (event, credentials) => {
    event.preventDefault();
    const button = event.target.querySelector('button');
    button.disabled = true;
    error.textContent = '';
    try {
      await api.logIn(credentials());
      enter();
    } catch (problem) {
      error.textContent = problem.message;
      button.disabled = false;
    }
  };
  fill(main, h('section', {class: 'login card'}, h('h1', {}, 'Fanfare operations'),
    h('p', {class: 'muted'}, 'For users with the scope operate, or read:all to see without steering.'), error,
    h('form', {onsubmit: event => form(event, () => ({user: user.value, password: password.value}))},
      h('label', {}, 'User', user), h('label', {}, 'Password', password),
      h('button', {class: 'primary'}, 'Log in')),
    h('details', {}, h('summary', {}, 'With an API key'),
      h('form', {onsubmit: event => form(event, () => ({key: key.value}))},
        h('label', {}, 'API key', key), h('button', {}, 'Log in with the key')))));
  user.focus();
}

api.onLogOut(message => {
  stream?.abort();
  leave?.abort();
  api.pulse.state = null;
  showLogIn(message);
});
api.pulse.watchers.add(state => {
  live.className = api.pulse.isLate ? 'late' : '';
  live.textContent = api.pulse.isLate ? 'Not connected' : 'Live';
  live.title = timeOfDay(state.at);
});
document.getElementById('logout').addEventListener(
  'click', () => api.logOut().catch(error => toast(error.message, true)));
addEventListener('hashchange', show);

try {
  if (await api.resume()) enter();
  else showLogIn();
} catch (error) {
  showLogIn(error.message);
}
