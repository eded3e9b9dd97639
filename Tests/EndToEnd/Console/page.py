"""Uses the operations page of a demo with a broadcast as an operator would.

Arguments: Chromium, the API's address, a folder for screenshots. Prints one line of JSON; status 1 and the reason if
the page fails."""
import json
import pathlib
import sys
import urllib.parse

from chromium import Browser, Failure

CHECKS = pathlib.Path(__file__).with_name("checks.js").read_text(encoding="utf-8")
PAGES = ["overview", "sends", "broadcasts", "devices?user=user-1", "letters", "schedule"]


def expect(condition, problem):
    if not condition:
        raise Failure(problem)


def log_in(page, base, user):
    page.open(base + "/console")
    page.until("!!document.querySelector('[name=user]')", "there is no log-in form")
    page.run(f"""(() => {{
        for (const name of ['user', 'password']) document.querySelector(`[name=${{name}}]`).value = {json.dumps(user)};
        document.querySelector('form').requestSubmit();
    }})()""")


def accessible(page, name):
    problems = page.run(CHECKS)
    expect(not problems, f"{name}: {problems}")


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


def agree(page):
    page.until("document.getElementById('ask').open", "an act does not ask first")
    page.run("document.getElementById('ask-yes').click()")


def press(page, name):
    page.until(f"[...document.querySelectorAll('main button')].some(b => b.textContent === '{name}' && !b.disabled)",
               f"the button {name} is missing")
    page.run(f"[...document.querySelectorAll('main button')].find(b => b.textContent === '{name}').click()")
    agree(page)


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
    accessible(page, "broadcast")
    press(page, "Pause")
    page.until("document.querySelector('main').innerText.includes('paused')", "the broadcast does not pause")
    # Pages that had begun are finished; then nothing moves.
    last, same = -1, 0
    for _ in range(60):
        now = done(page)
        same = same + 1 if now == last else 0
        last = now
        if same >= 12:
            break
        page.run("new Promise(resolve => setTimeout(resolve, 250))")
    expect(same >= 12, "a paused broadcast goes on")
    page.shot(f"{shots}/broadcast.png")
    press(page, "Resume")
    page.wait_for(lambda: done(page) > last, "the broadcast does not go on", 30)
    return {"paused": last, "resumed": done(page)}


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
        for name in PAGES:
            for size in ((1280, 900), (360, 740)):
                show(page, base, name, size)
                page.run("new Promise(resolve => setTimeout(resolve, 700))")
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
        page.run("location.hash = '#/devices?user=user-1'")
        press(page, "Test")
        page.until("document.querySelector('main').innerText.includes('The service answered')",
                   "the test send shows no answer", 40)
        page.shot(f"{shots}/test-send.png")
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


try:
    main()
except Failure as failure:
    print(failure, file=sys.stderr)
    sys.exit(1)
