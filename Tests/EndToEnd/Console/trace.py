"""Uses the page that replays a simulation with one broken promise.

Arguments: Chromium, the page's address, a folder for screenshots. Prints one line of JSON; status 1 and the reason if
the page fails."""
import json
import sys

from chromium import Browser, Failure, accessible, expect, perform

READOUT = "document.querySelector('.readout').innerText"
NAMED = "[...document.querySelectorAll('.process.named h3')].map(h => h.innerText)"


def press(page, name):
    find = f"[...document.querySelectorAll('button')].find(b => b.textContent === {json.dumps(name)} && !b.disabled)"
    page.until("!!" + find, f"the button {name} is missing or disabled")
    page.run(f"{find}.click()")


def key(page, name):
    page.run(f"document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: {json.dumps(name)}, bubbles: true}}))")


def move(page, share):
    """Moves the slider to a share of the whole time."""
    page.run(f"""(() => {{
        const slider = document.getElementById('time');
        slider.value = slider.max * {share};
        slider.dispatchEvent(new Event('input'));
    }})()""")


def slide(page):
    move(page, 0)
    expect(page.run(READOUT).startswith("0:00.000"), "the slider does not lead to the beginning")
    expect(page.run("document.querySelectorAll('.process').length") == 3, "three workers begin")
    expect("no partitions" in page.text(), "a worker has partitions before its group has given it any")
    move(page, 0.3)
    expect(page.run("document.querySelectorAll('.process .owned b').length") > 0, "no partition has an owner")
    expect(page.run("document.querySelectorAll('[aria-label=Partitions] .cell b').length") >= 8, "no partition is shown")
    for direction in ("ArrowRight", "ArrowLeft"):
        before = page.run(READOUT)
        key(page, direction)
        expect(page.run(READOUT) != before, f"the key {direction} does not move time")


def faults(page):
    key(page, "Home")
    seen = set()
    for _ in range(3):
        key(page, "f")
        seen.add(page.run("document.querySelector('[role=status]').innerText"))
    expect(len(seen) > 1 and "" not in seen, f"three faults are not told: {seen}")
    expect(page.run(NAMED + ".length + document.querySelectorAll('.lane.named, .over .named').length") > 0,
           "the part that a fault concerns does not stand out")


def play(page):
    key(page, "Home")
    press(page, "Play")
    page.until(f"!{READOUT}.startsWith('0:00')", "time does not pass")
    press(page, "Pause")
    expect("Pause" not in page.text(), "the page does not pause")


def broken(page):
    expect("broken" in page.run("document.getElementById('verdict').innerText"), "the verdict is missing")
    key(page, "End")
    found = "[...document.querySelectorAll('.finding')].find(f => f.innerText.includes('which is forbidden here'))"
    text = page.run(f"{found}.querySelector('b').innerText")
    page.run(f"{found}.querySelector('button').click()")
    told = page.run("document.querySelector('[role=status]').innerText")
    expect(text in told, f"the promise is not told: {told}")
    story = page.run("document.getElementById('story').innerText")
    push, send = text.split(" of ")[0], text.split(" of ")[1].split(" ")[0]
    for part in (push, send, "is posted to", "is accepted", "pushes", "which is forbidden here"):
        expect(part in story, f"the history lacks “{part}”: {story}")
    process = text.split(" by ")[1].split(",")[0]
    expect(process in page.run(NAMED), f"{process} does not stand out")
    expect(page.run("!!document.querySelector('.events .violation')"), "the promise is not among the events")


def main():
    program, address, shots = sys.argv[1:4]
    page = Browser(program)
    try:
        page.size(1400, 1000)
        page.open(address)
        page.until("!!document.querySelector('.lanes svg')", "the page draws nothing")
        slide(page)
        faults(page)
        play(page)
        broken(page)
        for dark in ("light", "dark"):
            page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": dark}])
            for width, height in ((1400, 1000), (360, 740)):
                page.size(width, height)
                page.run("new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
                accessible(page, f"{dark}, {width} px")
                wide = page.run("document.documentElement.scrollWidth")
                expect(wide <= width, f"the page is {wide} pixels wide on a screen of {width}")
                page.shot(f"{shots}/trace-{dark}-{width}.png")
        foreign = [url for url in page.requests if not url.startswith(("data:", "file:"))]
        expect(not foreign, f"the page asks for {foreign}")
        expect(not page.errors, f"the console reports: {page.errors}")
        print(json.dumps({"events": page.run("document.querySelectorAll('.events li').length")}))
    except Failure:
        page.shot(f"{shots}/failure.png")
        raise
    finally:
        page.close()


perform(main)
