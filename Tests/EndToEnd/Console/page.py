"""Uses the operations page of a demo with a broadcast as an operator would.

Arguments: Chromium, the API's address, a folder for screenshots. Prints one line of JSON; status 1 and the reason if
the page fails."""
import base64
import datetime
import json
import sys
import urllib.error
import urllib.parse
import urllib.request

from chromium import Browser, Failure, accessible, expect, perform

DELIVERED = "import('/console/api.js').then(module => module.pulse.state.figures.delivered)"
PAGES = ["overview", "sends", "broadcasts", "devices?user=user-1", "letters", "schedule"]


def log_in(page, base, user):
    page.open(base + "/console")
    page.until("!!document.querySelector('[name=user]')", "there is no log-in form")
    page.run(f"""(() => {{
        for (const name of ['user', 'password']) document.querySelector(`[name=${{name}}]`).value = {json.dumps(user)};
        document.querySelector('form').requestSubmit();
    }})()""")


def refuse_stranger(program, base):
    page = Browser(program)
    try:
        log_in(page, base, "alice")
        page.until("document.querySelector('.error')?.textContent",
                   "a user without the scope is not refused")
        expect("scope" in page.run("document.querySelector('.error').textContent"), "the refusal names no scope")
        expect(page.run("document.getElementById('bar').hidden"), "a refused user sees the page")
        expect(page.run("document.cookie") == "", "scripts can read the session")
        accessible(page, "log-in")
    finally:
        page.close()


def show(page, base, hash_, size):
    page.size(*size)
    page.run(f"location.hash = '#/{hash_}'")
    page.until("!!document.querySelector('h1') && !document.querySelector('#main').innerText.includes('undefined')",
               f"{hash_} does not render")
    width = page.run("document.documentElement.scrollWidth")
    expect(width <= size[0], f"{hash_} is {width} pixels wide on a screen of {size[0]}")


def press(page, name, words, value=None):
    """Presses a button, reads what it will do, fills a field of the question, and agrees."""
    find = f"[...document.querySelectorAll('main button')].find(b => b.textContent === '{name}' && !b.disabled)"
    page.until("!!" + find, f"the button {name} is missing or disabled")
    page.run(f"{find}.click()")
    page.until("document.getElementById('ask').open", f"{name} does not ask first")
    text = page.run("document.getElementById('ask').innerText")
    expect(words in text, f"{name} does not say “{words}” but “{text}”")
    accessible(page, f"the question of {name}")
    if value is not None:
        page.run(f"document.querySelector('#ask input').value = {json.dumps(value)}")
    page.run("document.getElementById('ask-yes').click()")


def told(page, words):
    page.until(f"document.getElementById('toast').innerText.includes({json.dumps(words)})",
               f"the page does not say “{words}”")


def call(base, path, body=None):
    """Calls the API as a backend does."""
    request = urllib.request.Request(
        base + path, body and json.dumps(body).encode(),
        {"Authorization": "Basic " + base64.b64encode(b"alice:alice").decode(), "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        expect(error.code == 404, f"{path}: {error}")
        return None


def post(page, base, body):
    """Posts a send. Returns its id when the history has it."""
    path = "/api/sends/" + call(base, "/api/sends", body)["id"]
    page.wait_for(lambda: call(base, path), "the send is not in the history")
    return path.removeprefix("/api/sends/")


def done(page):
    return page.run("Number((document.getElementById('done')?.textContent ?? '0').replace(/\\D/g, ''))")


def steer(page, shots):
    """Pauses and resumes the running broadcast."""
    page.size(1280, 900)
    page.run("location.hash = '#/broadcasts'")
    link = page.until("document.querySelector('[aria-label=\"Running broadcasts\"] a')?.hash",
                      "the broadcast is not listed")
    page.run(f"location.hash = {json.dumps(link)}")
    before = page.until("Number((document.getElementById('done')?.textContent ?? '').replace(/\\D/g, ''))",
                        "no device is counted", 30)
    page.wait_for(lambda: done(page) > before, "the live figures of the broadcast stand still", 30)
    page.until("document.querySelector('[aria-label=\"Failures by reason\"]')?.innerText.includes('UNREGISTERED')",
               "the failures have no reason")
    page.until("!!document.querySelector('[aria-label=\"Segments by worker\"] tbody tr')", "no worker has a segment")
    accessible(page, "broadcast")
    press(page, "Rate", "at most this many", "250")
    page.until("document.querySelector('main').innerText.includes('250 /s')", "the rate does not change")
    press(page, "Pause", "wait until it is resumed")
    page.until("document.querySelector('main').innerText.includes('paused by a caller')",
               "the broadcast does not pause")
    # Pushes in flight are finished; then nothing moves.
    page.until(f"{DELIVERED}.then(rate => rate === 0)", "a paused broadcast goes on")
    last = done(page)
    for _ in range(4):
        page.run("new Promise(resolve => setTimeout(resolve, 500))")
        expect(page.run(DELIVERED) == 0 and done(page) == last, "a paused broadcast goes on")
    page.run("document.getElementById('toast').replaceChildren()")
    page.shot(f"{shots}/broadcast.png")
    press(page, "Resume", "No device is reached twice")
    page.wait_for(lambda: done(page) > last, "the broadcast does not go on", 30)
    return {"paused": last, "resumed": done(page)}


def cancel(page, base):
    """Cancels a second broadcast, and a send before its time."""
    id_ = post(page, base, {"to": {"everyone": True}, "message": {"body": "Mistake"}, "maxPerSecond": 50})
    page.run(f"location.hash = '#/broadcasts/{id_}'")
    press(page, "Cancel", "cannot be undone")
    page.until("document.querySelector('main .badge')?.innerText === 'cancelled'", "the broadcast is not cancelled")
    due = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    post(page, base, {
        "to": {"user": "user-1"}, "message": {"body": "Later"}, "sendAt": due.strftime("%Y-%m-%dT%H:%M:%SZ")})
    page.run("location.hash = '#/schedule'")
    press(page, "Cancel", "The send to user-1")
    page.until("document.querySelector('main').innerText.includes('Nothing is scheduled')",
               "the send is still scheduled")


def redrive(page, shots):
    """Puts one of two dead letters back after the dry run."""
    page.run("location.hash = '#/letters'")
    page.until("document.querySelectorAll('[aria-label=\"Dead letters\"] tbody tr').length === 2", "no dead letters")
    page.run("document.querySelector('[aria-label=\"Dead letters\"] input').click()")
    press(page, "Redrive selection", "1 record will go back")
    told(page, "Put back: 1 record.")
    # Its cause is not mended: it becomes a dead letter again.
    one = page.run("document.querySelector('[aria-label=\"Dead letters\"] tbody a').hash")
    page.run(f"location.hash = {json.dumps(one)}")
    page.until("document.querySelector('main').innerText.includes('Came from')", "a dead letter has no page")
    accessible(page, "dead letter")
    page.shot(f"{shots}/letter.png")


def devices(page, shots):
    """Shows what a push service answers to one device, and removes another user's device."""
    page.run("location.hash = '#/devices?user=user-1'")
    press(page, "Test", "shows a notification")
    page.until("document.querySelector('main').innerText.includes('The service answered 200')",
               "the test send shows no answer", 40)
    page.shot(f"{shots}/test-send.png")
    page.run("location.hash = '#/devices?user=user-2'")
    rows = "document.querySelectorAll('[aria-label=\"Devices of user-2\"] tbody tr').length"
    before = page.until(rows, "user-2 has no devices")
    press(page, "Remove", "user-2 gets no notification")
    page.until(f"{rows} === {before - 1}", "the device is not removed")
    page.until("!!document.querySelector('[aria-label=\"Removed and quarantined devices\"] tbody tr')",
               "the removed device has no tombstone")


def main():
    program, base, shots = sys.argv[1:4]
    refuse_stranger(program, base)
    page = Browser(program)
    try:
        log_in(page, base, "operator")
        page.until("document.querySelectorAll('main .figure').length === 6 && "
                   "document.querySelectorAll('[aria-label=Processes] tbody tr').length >= 2",
                   "the overview shows no processes", 30)
        expect(page.run("document.cookie") == "", "scripts can read the session")
        first = page.run("document.querySelector('.chart').ariaLabel + document.querySelector('svg path').outerHTML")
        page.until(f"document.querySelector('.chart').ariaLabel + document.querySelector('svg path').outerHTML "
                   f"!== {json.dumps(first)}", "the live figures of the overview stand still")
        result = steer(page, shots)
        cancel(page, base)
        devices(page, shots)
        redrive(page, shots)
        for name in PAGES:
            for size in ((1280, 900), (360, 740)):
                show(page, base, name, size)
                page.run("new Promise(resolve => setTimeout(resolve, 400))")
                accessible(page, f"{name} at {size[0]} px")
                page.run("document.getElementById('toast').replaceChildren()")
                page.shot(f"{shots}/{name.split('?')[0]}-{size[0]}.png")
        # One send of the list, with its way.
        show(page, base, "sends", (1280, 900))
        one = page.until("document.querySelector('[aria-label=Sends] a')?.hash", "no send is listed")
        page.run(f"location.hash = {json.dumps(one)}")
        stages = ["Accepted by the API", "Taken by a worker", "Devices looked up", "Pushed", "Answered"]
        page.until(f"{json.dumps(stages)}.every(stage => document.querySelector('.timeline')?.innerText.includes(stage))",
                   "a send's timeline lacks stages", 20)
        accessible(page, "send")
        page.shot(f"{shots}/send.png")
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        show(page, base, "overview", (1280, 900))
        page.run("new Promise(resolve => setTimeout(resolve, 700))")
        accessible(page, "overview in the dark")
        page.shot(f"{shots}/overview-dark.png")
        page.run("document.getElementById('logout').click()")
        page.until("!!document.querySelector('[name=password]')", "logging out does not end the session")
        own = urllib.parse.urlsplit(base).netloc
        foreign = [url for url in page.requests
                   if not url.startswith("data:") and urllib.parse.urlsplit(url).netloc != own]
        expect(not [url for url in foreign if url != "about:blank"], f"the page asks other hosts: {foreign}")
        # The answer that nobody is logged in yet is an answer, although browsers log it.
        errors = [error for error in page.errors if "/api/session" not in error]
        expect(not errors, f"the console reports: {errors}")
        result["requests"] = len(page.requests)
        print(json.dumps(result))
    except Failure:
        page.shot(f"{shots}/failure.png")
        raise
    finally:
        page.close()


perform(main)
