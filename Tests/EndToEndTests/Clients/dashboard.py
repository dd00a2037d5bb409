"""Opens the dashboard in headless Chromium, uses everything on it, and says what is wrong: a line of JSON a scene.

The only argument is a JSON object:
  url           the admin listener
  plain         the plain listener, where the scene `cards` answers as a worker does; none by default
  device        a device with pushes, one of them in flight; for the scene `tasks`, with those of DashboardTests
  push          the apns-id of one of its pushes
  operator      the bearer token that the page is to ask for; none by default
  folder        where screenshots go
  scenes        the names of the functions below that are to be played, in order
A line of standard input, or its end, says that what the scene `gone` or `back` is about has happened.
A line is {"scene": ..., "faults": [...]}: everything that should not be, and nothing when all is well.
"""

import functools
import json
import re
import sys
import types

import httpx
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Error, expect, sync_playwright

settings = types.SimpleNamespace(**{"operator": None, "plain": None, **json.loads(sys.argv[1])})
expect.set_options(timeout=60_000)


class Watcher:
    """Notes what a page must not do: log, throw, ask another origin, or put a bearer token into a URL."""

    def __init__(self, page):
        self.faults = []
        page.on("console", lambda message: self.note(f"console {message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.note(f"thrown: {error}"))
        page.on("request", self.requested)

    expected = ()

    def note(self, fault):
        if not any(word in fault for word in self.expected):
            self.faults.append(fault)

    def require(self, holds, fault):
        if not holds:
            self.note(fault)

    def requested(self, request):
        self.require(request.url.startswith(settings.url + "/"), f"a request to {request.url}")
        is_shown = settings.operator and settings.operator in request.url
        self.require(not is_shown, "the operator's token stands in a URL")


def open_page(browser, scheme="light", width=1440, height=900, **options):
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height}, **options)
    page = context.new_page()
    watcher = Watcher(page)
    page.goto(settings.url + "/")
    return page, watcher


def wait_for_ready(page):
    expect(page.locator("#status-text")).to_have_text("Ready")


def wait_for_life(page):
    wait_for_ready(page)
    expect(page.locator("#topics table")).to_be_visible()
    expect(page.locator("#workers table")).to_be_visible()


PHONE = {"width": 390, "height": 844, "has_touch": True, "reduced_motion": "reduce"}


def scene(wait=wait_for_life, expected=(), **options):
    """A function of a page and its watcher as a scene: it gets the page when `wait` returns. `expected` are words in
    what the browser itself may log."""

    def make(play):
        def played(browser):
            page, watcher = open_page(browser, **options)
            watcher.expected = expected
            if wait:
                wait(page)
            play(page, watcher)
            return watcher.faults

        return played

    return make


ENDLESS = "document.getAnimations().some((one) => one.effect.getComputedTiming().iterations === Infinity)"


def check(page, watcher, name):
    """Looks for faults of accessibility, and for what does not fit into the width."""
    for fault in Axe().run(page).response["violations"]:
        node = fault["nodes"][0]
        watcher.faults.append(f"axe {fault['id']} x{len(fault['nodes'])}: {node['html']} {node['failureSummary']}")
    fits = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    watcher.require(fits, "the page is wider than the window")
    is_calm = not page.evaluate(ENDLESS)
    watcher.require(is_calm, "an endless animation costs a fifth of a core while the page is open")
    page.evaluate("window.scrollTo(0, 0)")
    page.screenshot(path=f"{settings.folder}/{name}.png", full_page=True)


def inspect_device(page):
    page.fill("#query", settings.device)
    page.get_by_role("button", name="Inspect").click()
    expect(page.locator(".why")).not_to_be_empty()
    expect(page.locator(".lanes svg")).to_be_visible()


def look(browser, name, **options):
    page, watcher = open_page(browser, **options)
    wait_for_life(page)
    if name.startswith("tasks"):
        expect(page.locator("#tasks table")).to_be_visible()
    expect(page.locator("#charts .chart .line").first).to_have_attribute("d", value=re.compile("M.*L"))
    check(page, watcher, name)
    inspect_device(page)
    check(page, watcher, f"{name}-device")
    page.context.close()
    return watcher.faults


light = functools.partial(look, name="light")
dark = functools.partial(look, name="dark", scheme="dark")
phone = functools.partial(look, name="phone", **PHONE)


# The controls that a scene has not used yet.
CONTROLS = """
(() => [...document.querySelectorAll('button, input, a, [tabindex="0"]')]
  .filter((node) => node.checkVisibility() && !node.disabled && !node.hasAttribute('data-used'))
  .map((node) => node.outerHTML.slice(0, 140)))()
"""


def use(locator, action="click", *arguments):
    locator.evaluate("(node) => node.setAttribute('data-used', '')")
    getattr(locator, action)(*arguments)


# A simulated launch during a wake gives 409, and an unknown device gives 404. The browser logs both.
@scene(expected=("status of 404", "status of 409", "status of 400"))
def controls(page, watcher):
    """Every control, by pointer and by keyboard, does what it says."""
    theme = page.locator("#theme")
    for name in ("light", "dark", "auto"):
        use(theme)
        expect(theme).to_have_text(f"Theme: {name}")
    for seconds in ("10", "300", "1"):
        use(page.locator(f"#span input[value='{seconds}']"), "check")
    for period in ("day", "hour"):
        use(page.locator(f"#period input[value='{period}']"), "check")
    for index in range(page.locator(".chart svg").count()):
        chart = page.locator(".chart svg").nth(index)
        use(chart, "focus")
        page.keyboard.press("ArrowLeft")
        expect(chart.locator(".cursor")).to_have_count(1)
        expect(chart).to_have_attribute("aria-label", re.compile(r", at \d\d:\d\d:\d\d"))
        page.keyboard.press("Escape")
        expect(chart.locator(".cursor")).to_have_count(0)
        chart.hover()
        expect(chart.locator(".cursor")).to_have_count(1)
    for region in ("Table of topics", "Table of workers", "Table of the pushes of topics in a period"):
        use(page.get_by_role("region", name=region), "focus")
    use(page.locator(".skip"), "focus")
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    search(page)
    device(page)
    topic(page)
    for name in ("devices", "pushes", "workers", "events", "overview"):
        use(page.locator(f"#views a[data-view={name}]"))
        expect(page.locator("#views a[aria-current]")).to_have_text(re.compile(name, re.IGNORECASE))
    expect(page.locator("#live")).to_be_visible()
    page.go_back()
    inspect_device(page)
    # The controls of later panels stay unmarked.
    page.evaluate("document.querySelectorAll('.inspector :is(button, input, a, [tabindex])')"
                  ".forEach((node) => node.setAttribute('data-used', ''))")
    watcher.faults += [f"never used: {control}" for control in page.evaluate(CONTROLS)]
    page.keyboard.press("Escape")
    expect(page.locator("#inspector")).to_be_hidden()


@scene()
def durations(page, watcher):
    """The slowest worker is first; what was counted lately leads to the pushes."""
    rows = page.locator("#durations-workers tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("snail")
    expect(rows.first).to_contain_text("push")
    expect(page.locator("#durations-topics tbody tr")).to_have_count(1)
    expect(page.locator("#durations-since")).to_contain_text("the 20 slowest of each kind")
    for period in ("day", "hour"):
        page.locator(f"#period input[value='{period}']").check()
        row = page.locator("#periods tbody tr", has_text="com.example.dashboard")
        expect(row.locator("td")).to_have_text(["6", "2", "2", "1", "0", "0"])
        expect(page.locator("#periods tbody tr").first.locator("td")).to_have_text(["6", "2", "2", "1", "0", "0"])
    check(page, watcher, "durations")
    row.locator("td").nth(2).get_by_role("link").click()
    expect(page.locator("#list tbody tr")).to_have_count(2)
    expect(page.locator("#list tbody tr").first).to_contain_text("coalesced")
    page.select_option("#pushes-outcome", "expired,lost")
    expect(page.locator("#list tbody tr")).to_have_count(1)
    expect(page.locator("#list tbody tr").first).to_contain_text("expired")
    page.go_back()
    page.go_back()
    rows.first.get_by_role("link").click()
    expect(page.locator("#list tbody tr")).to_have_count(1)


def search(page):
    page.keyboard.press("/")
    query = page.locator("#query")
    expect(query).to_be_focused()
    use(query, "fill", "nonsense")
    use(page.get_by_role("button", name="Inspect"))
    expect(page.locator("#inspector-title")).to_have_text("That is neither a device token nor an apns-id")
    page.get_by_role("button", name="Close").click()
    query.fill("ff" * 32)
    query.press("Enter")
    expect(page.locator("#inspector-title")).to_have_text("Not found")
    query.fill(settings.push)
    query.press("Enter")
    expect(page.locator("#inspector-title")).to_contain_text("Push")
    expect(page.locator(".events li")).not_to_have_count(0)


def device(page):
    inspect_device(page)
    outcome = page.locator(".inspector .panel > [role=status]").first
    use(page.get_by_role("button", name="Simulate expiration"))
    expect(outcome).to_have_text("The wake was ended as expired.")
    expect(page.locator(".events").first).to_contain_text("expired")
    use(page.get_by_role("button", name="Simulate launch"))
    expect(outcome).to_have_text("A wake is on its way to a worker.")
    page.get_by_role("button", name="Simulate launch").click()
    expect(outcome).to_contain_text("in flight already")
    expect(page.locator(".clock")).to_have_text(re.compile(r"^\d+:\d\d$"))
    for index in range(page.locator(".whatif-form input").count()):
        use(page.locator(".whatif-form input").nth(index), "fill", "1")
    use(page.get_by_role("button", name="Replay"))
    expect(page.get_by_text("Difference")).to_be_visible()
    page.locator("input[name=launchInterval]").fill("0")
    page.get_by_role("button", name="Replay").click()
    expect(page.locator(".whatif-form [role=alert]")).to_contain_text("launchInterval is 0")
    use(page.get_by_role("button", name="As in force"))
    expect(page.get_by_text("Difference")).to_have_count(0)
    use(page.get_by_role("region", name="Outcomes compared"), "focus")
    page.locator(".events .link").first.click()
    expect(page.locator("#inspector-title")).to_contain_text("Push")
    inspect_device(page)
    use(page.get_by_role("button", name="Older"))
    expect(page.get_by_role("button", name="Older")).to_be_hidden()
    use(page.get_by_role("button", name="Newest"))
    expect(page.get_by_role("button", name="Older")).to_be_visible()
    for index in range(page.locator(".events").count()):
        use(page.locator(".events").nth(index), "focus")
    test_push(page)


def topic(page):
    """A topic's name leads to its page, which replays its devices under another policy."""
    use(page.locator("#views a[data-view=overview]"))
    use(page.locator("#topics tbody th a").first)
    expect(page.locator("#inspector-title")).to_have_text(re.compile("^Topic "))
    expect(page.get_by_text(re.compile("registered devices were looked at"))).to_be_visible()
    expect(page.get_by_text("Difference")).to_have_count(0)
    use(page.locator("input[name=launchInterval]"), "fill", "0")
    use(page.get_by_role("button", name="Replay"))
    expect(page.locator(".whatif-form [role=alert]")).to_contain_text('launchInterval is "0"')
    page.locator("input[name=launchInterval]").fill("600")
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_text("Difference")).to_be_visible()
    expect(page.get_by_role("rowheader", name="Launches", exact=True)).to_be_visible()
    use(page.locator("#inspector").get_by_role("link", name="devices"))
    expect(page.locator("#devices-topic")).to_have_value(re.compile("com.example"))


def test_push(page):
    """The page itself refuses a payload that is not JSON."""
    form = page.get_by_role("region", name="Send a test push")
    form.get_by_label("Payload").fill("{")
    form.get_by_role("button", name="Send").click()
    expect(form.get_by_role("status")).to_contain_text("The payload is not JSON")


def tasks(browser):
    """Waiting and running tasks are shown and found; they launch, expire and are cancelled; texts are never markup."""
    faults = look(browser, "tasks-dark", scheme="dark") + look(browser, "tasks-phone", **PHONE)
    page, watcher = open_page(browser)
    watcher.faults += faults
    wait_for_life(page)
    task_table(page)
    check(page, watcher, "tasks")
    row = page.locator("#tasks tbody tr", has_text="com.example.clean")
    use(row.get_by_role("link"))
    expect(page.get_by_role("rowheader", name="Task launches")).to_be_visible()
    check_task_texts(page, watcher)
    check_strip(page, watcher)
    device_tasks(page, watcher)
    page.evaluate("document.querySelectorAll('#tasks .link').forEach((node) => node.setAttribute('data-used', ''))")
    inside = ":is(#tasks, #task-filters, .tasks)"
    watcher.faults += [f"never used: {control}" for control in page.evaluate(
        CONTROLS.replace("'button, input, a, [tabindex=\"0\"]'", f"'{inside} :is(button, input, select, a, [tabindex])'"))]
    return watcher.faults


def task_table(page):
    """The table of all devices, by every filter."""
    rows = page.locator("#tasks tbody tr")
    page.locator("#tasks-title").scroll_into_view_if_needed()
    expect(rows).to_have_count(4)
    expect(rows.filter(has_text="com.example.clean")).to_contain_text("it requires external power")
    expect(rows.filter(has_text="com.example.export").get_by_role("progressbar")).to_have_attribute(
        "aria-valuetext", "30 of 120")
    kind, state, topic = (page.get_by_label(name, exact=True) for name in ("Kind", "State", "Topic"))
    use(kind, "select_option", "processing")
    expect(rows).to_have_count(1)
    use(state, "select_option", "running")
    expect(page.locator("#tasks")).to_have_text("No task of this kind, state and topic waits or runs.")
    kind.select_option("")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("com.example.export")
    state.select_option("")
    use(topic, "fill", "com.example.none")
    expect(rows).to_have_count(0)
    topic.fill("com.example.dashboard")
    expect(rows).to_have_count(4)
    use(page.get_by_role("region", name="Table of background tasks"), "focus")
    counts = page.locator("#task-counts")
    expect(counts).to_contain_text("every request")
    expect(counts).to_contain_text("every transfer")
    expect(page.locator("#tiles")).to_contain_text("Tasks waiting")


# The marks on the task line of a device: one task was launched twice, another runs, and a third waits.
STRIP = """
async () => {
  const now = Date.now();
  const { strip } = await import("/dashboard/strip.js");
  const of = (minutes, event, detail, task = "a") =>
    ({ at: now - minutes * 60000, event, apnsID: null, kind: "processing", task, detail });
  const recent = [of(1, "launch", "attempt 1", "b"), of(2, "result", "failure"), of(3, "launch", "attempt 1"),
    of(4, "result", "success"), of(5, "launch", "attempt 1"), of(6, "submit", "scheduled", null)];
  const waiting = [5, 60].map((minutes) =>
    ({ identifier: `c${minutes}`, kind: "appRefresh", eligibleAt: now + minutes * 60000, held: null }));
  const tasks = { waiting, running: [{ identifier: "b", kind: "processing", wake: "00" }] };
  const picture = strip({ recent, tasks, pending: null }, now, 900);
  return [...picture.querySelectorAll(".mark, .run, .future")].map((node) =>
    `${node.getAttribute("class")}:${/processing b|c5|c60/.exec(node.textContent)?.[0] ?? ""}`);
}
"""


def check_strip(page, watcher):
    expected = ["run ink-good:", "run ink-warn:", "run ink-launches:", "mark ink-good:", "mark ink-warn:",
                "mark ink-launches:processing b", "future ink-launches:c5"]
    found = page.evaluate(STRIP)
    watcher.require(found == expected, f"the strip has {found}")


def check_task_texts(page, watcher):
    """The title and subtitle of the continued task contain markup, which is shown as text."""
    item = page.locator(".tasks > li", has_text="com.example.export")
    expect(item).to_contain_text("<script>document.title = 'script'</script>")
    expect(item).to_contain_text("<img src=x onerror=\"document.title = 'image'\">")
    watcher.require(page.title() not in ("script", "image"), "a task's text became markup")
    expect(page.locator("main :is(script, img)")).to_have_count(0)


def device_tasks(page, watcher):
    panel = page.get_by_role("region", name="Its background tasks")
    outcome, items = panel.get_by_role("status"), panel.locator(".tasks > li")
    expect(items).to_have_count(4)
    expect(panel).to_contain_text("The device was last used")
    expect(items.filter(has_text="com.example.export").get_by_role("progressbar")).to_have_attribute(
        "aria-valuenow", "25")
    expect(items.filter(has_text="uploads")).to_contain_text("3 finished transfers")
    expect(items.filter(has_text="uploads").get_by_role("button")).to_have_count(0)
    expect(items.filter(has_text="com.example.refresh")).to_contain_text(re.compile(r"may launch .* in \d+:\d\d"))
    expect(page.locator(".strip title", has_text="continued com.example.export: Launch, attempt 1")).to_have_count(1)
    check(page, watcher, "tasks-device")
    clean = items.filter(has_text="com.example.clean")
    expect(clean).to_contain_text("is held because it requires external power")
    launch = page.get_by_role("button", name="Simulate launch of com.example.clean")
    use(launch, "focus")
    page.keyboard.press("Enter")
    expect(outcome).to_have_text("com.example.clean is on its way to a worker.")
    expect(clean).to_contain_text("running since")
    expire = page.get_by_role("button", name="Simulate expiration of com.example.clean")
    # After a launch by keyboard, the focus is on the button that ends the task.
    expect(expire).to_be_focused()
    use(expire)
    expect(outcome).to_have_text("com.example.clean was ended as expired.")
    expect(clean).to_have_count(0)
    expect(page.locator(".events").first).to_contain_text("processing com.example.clean: Result: expired")
    expect(page.locator(".strip .mark.ink-bad title", has_text="processing com.example.clean")).to_have_count(1)
    for name, words in (("refresh", "was cancelled."), ("export", "was cancelled, and its worker is notified.")):
        use(page.get_by_role("button", name=f"Cancel com.example.{name}"))
        expect(outcome).to_have_text(f"com.example.{name} {words}")
        expect(items.filter(has_text=f"com.example.{name}")).to_have_count(0)
    expect(items).to_have_count(1)


def ask(method, path, body=None, url=None):
    """Asks the gateway itself, as a device or its worker does."""
    answer = httpx.request(method, (url or settings.url) + path, json=body, trust_env=False).raise_for_status()
    return answer.json() if answer.content else None


def cards(browser):
    """A continued task has a card from its start to its end: progress, rate, time left, stall, cancellation, expiry."""
    title, subtitle = "<b>Export</b>", "<img src=x onerror=alert(1)>"
    phone_size = {"width": 390, "height": 844, "has_touch": True}
    seen = {
        "cards": open_page(browser, width=1400, height=900),
        "cards-phone": open_page(browser, scheme="dark", **phone_size),
        "cards-dark": open_page(browser, scheme="dark", width=1400, height=900),
        "cards-phone-light": open_page(browser, **phone_size),
    }
    page, watcher = seen["cards"]
    wait_for_ready(page)
    expect(page.locator("#running")).to_be_hidden()
    wake = submit("com.example.export", title)
    card = page.locator(".card")
    expect(card).to_have_count(1)
    expect(card.locator("h3")).to_have_text(title)
    expect(card).to_contain_text("No progress reported yet")
    bar = card.get_by_role("progressbar")
    for completed in (10, 40):
        progress = {"completed": completed, "total": 100, "subtitle": subtitle}
        ask("POST", f"/v1/wakes/{wake}/progress", progress, settings.plain)
        expect(bar).to_have_attribute("aria-valuenow", str(completed))
    expect(card).to_contain_text("40 of 100, 40 %")
    expect(card).to_contain_text(re.compile(r"[\d.]+/s.*\d+:\d\d left"))
    expect(card.locator(".subtitle")).to_have_text(subtitle)
    for name, (other, other_watcher) in seen.items():
        expect(other.locator(".card").get_by_role("progressbar")).to_have_attribute("aria-valuenow", "40")
        check(other, other_watcher, name)
    expect(page.locator("main b", has_text="Export").or_(page.locator("main img"))).to_have_count(0)
    # A task without progress looks different from others, and shows when this ends it.
    expect(card).to_contain_text("stalled")
    expect(card).to_contain_text("to its deadline")
    for name, (other, other_watcher) in list(seen.items())[1:]:
        expect(other.locator(".card")).to_contain_text("stalled")
        check(other, other_watcher, f"{name}-stalled")
    cancel = page.get_by_role("button", name=f"Cancel {title}")
    tab_to(page, cancel)
    page.keyboard.press("Enter")
    expect(card).to_contain_text(f"{title}: cancelled.")
    expect(card.locator("h3")).to_be_focused()
    page.locator("#theme").focus()
    expect(card).to_have_count(0)
    wake = submit("com.example.export", "Import")
    expect(card.locator("h3")).to_have_text("Import")
    # If the total is unknown, the page shows no percentage, and the bar has no value.
    ask("POST", f"/v1/wakes/{wake}/progress", {"completed": 7, "total": 0}, settings.plain)
    expect(card).to_contain_text("7 done")
    watcher.require(bar.get_attribute("aria-valuenow") is None, "a bar of an unknown total has a value")
    page.locator("#tasks").scroll_into_view_if_needed()
    expect(page.locator("#tasks .progress")).to_have_text("7 done")
    ask("POST", f"/v1/devices/{settings.device}/tasks/com.example.export/simulate-expiration")
    expect(card).to_contain_text("Import: expired.")
    expect(page.locator("#running")).to_be_hidden()
    return [fault for _, each in seen.values() for fault in each.faults]


def pages(browser):
    """Every view, wide and on a phone, in light and in dark: nothing is cut, and all of it can be read."""
    faults = []
    shown = {"devices": "#devices-title", "pushes": "#pushes-title", "workers": "#all-workers-title",
             "events": "#events-title", "topic/com.example.dashboard": "#inspector-title", f"device/{settings.device}": "#inspector-title",
             "find/nonsense": "#inspector-title", "no/such/view": "#inspector-title"}
    if settings.push:
        shown[f"push/{settings.push}"] = "#inspector-title"
    for scheme, width, height in SIZES:
        page, watcher = open_page(browser, scheme, width, height, reduced_motion="reduce")
        # A gateway that has received nothing does not know the device.
        watcher.expected = ("status of 404",)
        wait_for_ready(page)
        expect(page.locator("#tiles .tile")).not_to_have_count(0)
        for view, title in {"": None, **shown}.items():
            page.goto(f"{settings.url}/#/{view}")
            if title:
                expect(page.locator(title)).to_be_focused()
                expect(page.get_by_text("Asking the gateway.")).to_have_count(0)
            check(page, watcher, f"pages-{view.split('/')[0] or 'overview'}-{scheme}-{width}")
            watcher.faults += [f"cut at {page.url}: {found}" for found in page.evaluate(CUT)]
        faults += watcher.faults
        page.context.close()
    return faults


SIZES = [(scheme, *size) for scheme in ("light", "dark") for size in ((1400, 900), (390, 844))]

# The elements that extend beyond the window or are cut off, and are not in a scrolling element.
CUT = """
(() => [...document.querySelectorAll('main *, header *')].filter((node) => {
  if (!node.checkVisibility() || node.closest('.scroll, .hidden, svg, pre, .events, .segments, .tile')) return false;
  const box = node.getBoundingClientRect();
  const isCut = getComputedStyle(node).overflowX !== 'visible' && node.scrollWidth > node.clientWidth + 1;
  return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1 || (isCut && node.tagName !== 'INPUT'));
}).map((node) => node.outerHTML.slice(0, 120)))()
"""


def submit(identifier, title):
    """Submits a continued task, which a worker has at once; the wake it runs in."""
    task = {"identifier": identifier, "kind": "continued", "title": title}
    ask("POST", f"/v1/devices/{settings.device}/tasks", task)
    return ask("GET", f"/v1/devices/{settings.device}/tasks")["running"][0]["wake"]


def tab_to(page, locator):
    """Goes to a control by the keyboard alone."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if locator.evaluate("(node) => node === document.activeElement"):
            return
    raise AssertionError(f"{locator} is not reached by the key Tab")


@scene(wait=None, expected=("status of 401", "status of 403"))
def token(page, watcher):
    """The page asks for a token, says why a bad one is refused, and works with a good one; it survives a reload."""
    dialog = page.locator("#token-dialog")
    expect(dialog).to_be_visible()
    check(page, watcher, "token")
    page.get_by_label("Operator token").fill("wg1.e30.AAAA")
    page.get_by_role("button", name="Show the dashboard").click()
    expect(page.locator("#token-reason")).to_contain_text("not a bearer token of this gateway")
    page.get_by_label("Operator token").fill(settings.operator)
    page.keyboard.press("Enter")
    wait_for_ready(page)
    expect(dialog).to_be_hidden()
    page.reload()
    wait_for_ready(page)
    expect(dialog).to_be_hidden()


@scene(expected=("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET",
                 "ERR_EMPTY_RESPONSE", "ERR_SOCKET_NOT_CONNECTED"))
def gone(page, watcher):
    """The gateway is killed: the page says so and keeps its data; it reconnects automatically."""
    say("alive", [])
    sys.stdin.readline()
    expect(page.locator("#status-text")).to_have_text("No connection")
    expect(page.locator("#notice")).to_contain_text("The gateway does not answer.")
    expect(page.locator("#topics table")).to_be_visible()
    check(page, watcher, "gone")
    say("gone", watcher.faults)
    sys.stdin.readline()
    wait_for_ready(page)
    expect(page.locator("#notice")).to_be_hidden()


# Makes the page behave as hidden or visible.
SIGHT = """
(isHidden) => {
  Object.defineProperty(document, "hidden", { value: isHidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}
"""


class Streams:
    """The streams that the pages of a browser have open."""

    def __init__(self, context):
        self.open = set()
        paths = ("/v1/live", "/v1/events")
        context.on("request", lambda request: request.url.endswith(paths) and self.open.add(request))
        for end in ("requestfailed", "requestfinished"):
            context.on(end, lambda request: self.open.discard(request))

    def of(self, pages):
        """The place among the pages of each that has a stream; a page that is closed has none."""
        return sorted(pages.index(one.frame.page) for one in self.open if one.frame.page in pages)

    def settle(self, pages, count):
        """Waits until so many are open."""
        for _ in range(300):
            if len(self.of(pages)) == count:
                return
            pages[0].wait_for_timeout(100)
        raise AssertionError(f"not {count} streams, but those of the pages {self.of(pages)}")


def goes_on(page):
    """The page shows later samples."""
    uptime = page.locator("#health dd").nth(1)
    shown = uptime.inner_text()
    expect(uptime).not_to_have_text(shown)


def tabs(browser):
    """All tabs of a browser share one stream, however tabs are closed, hidden, shown and reloaded."""
    context = browser.new_context(reduced_motion="reduce")
    streams, pages, watchers = Streams(context), [], []
    for _ in range(8):
        pages.append(context.new_page())
        watchers.append(Watcher(pages[-1]))
        pages[-1].goto(settings.url + "/")
        wait_for_life(pages[-1])
    streams.settle(pages, 1)
    pages.pop(streams.of(pages)[0]).close()
    for page in pages:
        goes_on(page)
    streams.settle(pages, 1)
    leader = streams.of(pages)[0]
    pages[leader].evaluate(SIGHT, True)
    other = pages[leader - 1]
    goes_on(other)
    streams.settle(pages, 1)
    if streams.of(pages) == [leader]:
        watchers[0].note("a hidden page keeps its stream")
    for page in pages:
        page.evaluate(SIGHT, True)
    streams.settle(pages, 0)
    for page in pages:
        page.evaluate(SIGHT, False)
        goes_on(page)
    streams.settle(pages, 1)
    for turn in range(30):
        pages[turn % 3].goto(f"{settings.url}/?{turn}", wait_until="commit", timeout=60_000)
    for page in pages:
        wait_for_life(page)
    streams.settle(pages, 1)
    events(pages, streams)
    return [fault for watcher in watchers for fault in watcher.faults]


def events(pages, streams):
    """The stream of events ends when its page is hidden; the page says so when it is shown again."""
    page = pages[0]
    page.locator("#views a[data-view=events]").click()
    expect(page.get_by_text("What happens from now on is shown")).to_be_visible()
    streams.settle(pages, 2)
    page.evaluate(SIGHT, True)
    streams.settle(pages, 1)
    page.evaluate(SIGHT, False)
    expect(page.locator("#list tbody")).to_contain_text("the page was not in sight from here on")
    streams.settle(pages, 2)


# Resolves when the page has returned to its scroll position.
SCROLLED_BACK = """
() => new Promise((resolve) => {
  const look = () => (window.scrollY === 500 ? resolve() : requestAnimationFrame(look));
  look();
})
"""


@scene(expected=("status of 404", "status of 400"), height=600)
def addresses(page, watcher):
    """The address says what is shown: it can be sent, Back and Forward work, and the header covers nothing."""
    place = page.locator("#workers-title")
    page.evaluate("document.getElementById('workers-title').scrollIntoView()")
    uncovered(page, watcher, place)
    page.evaluate("window.scrollTo(0, 500)")
    inspect_device(page)
    title = page.locator("#inspector-title")
    expect(title).to_be_focused()
    uncovered(page, watcher, title)
    expect(page).to_have_url(f"{settings.url}/#/device/{settings.device}")
    page.locator(".events .link").first.click()
    expect(title).to_contain_text("Push")
    page.go_back()
    expect(title).to_contain_text("Device of")
    page.go_back()
    expect(page.locator("#inspector")).to_be_hidden()
    expect(page.locator("#live")).to_be_visible()
    page.evaluate(SCROLLED_BACK)
    page.go_forward()
    page.go_forward()
    expect(title).to_contain_text("Push")
    sent = page.context.new_page()
    sent.goto(page.url)
    expect(sent.locator("#inspector-title")).to_contain_text("Push")
    expect(sent).to_have_title(re.compile("^Push "))
    page.reload()
    expect(title).to_contain_text("Push")
    page.keyboard.press("Escape")
    expect(page.locator("#live")).to_be_visible()
    page.evaluate("location.hash = '#/find/nonsense'")
    expect(title).to_have_text("That is neither a device token nor an apns-id")
    page.evaluate("location.hash = '#/no/such/view'")
    expect(page.get_by_text("This dashboard has nothing at the address #/no/such/view.")).to_be_visible()
    expect(page.locator("#live")).to_be_hidden()
    page.get_by_role("button", name="Close").click()
    expect(page.locator("#live")).to_be_visible()
    # The content of an address is always shown as text.
    page.evaluate("location.hash = '#/devices?topic=' + encodeURIComponent('<img src=x onerror=alert(1)>')")
    expect(page.locator("#devices-topic")).to_have_value("<img src=x onerror=alert(1)>")
    expect(page.locator("main img")).to_have_count(0)


def uncovered(page, watcher, place):
    """The place is in the window, and below the header."""
    expect(place).to_be_in_viewport()
    header, box = page.locator("#bar").bounding_box(), place.bounding_box()
    is_below = box["y"] >= header["y"] + header["height"]
    watcher.require(is_below, f"the header covers {place}: {box} {header}")


@scene(**PHONE)
def hints(page, watcher):
    """Where a table is wider than the page, it says that it scrolls; where it is not, it says nothing."""
    scroller = page.locator("#topics .scroller")
    page.set_viewport_size({"width": 700, "height": 900})
    expect(scroller.locator(".scroll-hint")).to_be_visible()
    expect(scroller).to_have_class(re.compile("more-right"))
    scroller.locator(".scroll").evaluate("(node) => node.scrollTo(10000, 0)")
    expect(scroller).to_have_class(re.compile("more-left"))
    expect(scroller).not_to_have_class(re.compile("more-right"))
    page.set_viewport_size({"width": 1400, "height": 900})
    expect(scroller.locator(".scroll-hint")).to_be_hidden()


# The faults of the cards that replace tables: the reason must come first, and no column may leave the window.
CARDS = """
(() => {
  const faults = [];
  for (const table of document.querySelectorAll("table.rows")) {
    if (!table.checkVisibility()) continue;
    const scroll = table.closest(".scroll");
    if (scroll.scrollWidth > scroll.clientWidth) faults.push(`${scroll.ariaLabel} is wider than the window`);
    for (const row of table.tBodies[0].rows) {
      const shown = [...row.cells].filter((cell) => cell.checkVisibility());
      const tops = shown.map((cell) => cell.getBoundingClientRect().top);
      const reason = row.querySelector(".reason");
      const first = reason?.checkVisibility() ? reason : row.querySelector("th");
      if (tops[shown.indexOf(first)] !== Math.min(...tops)) faults.push(`${scroll.ariaLabel} begins with another cell`);
      for (const cell of row.querySelectorAll("td")) {
        if (!cell.dataset.label) faults.push(`${scroll.ariaLabel} has a cell without a name`);
      }
    }
  }
  return faults;
})()
"""


@scene(**PHONE)
def narrow(page, watcher):
    """Holds and refusals stand below the tiles, and each row of a table is a card on a phone."""
    panels = [one.get_attribute("aria-labelledby") for one in page.locator("#tiles + .columns > section").all()]
    watcher.require(panels == ["holds-title", "refused-title", "results-title"], f"below the tiles are {panels}")
    expect(page.locator("#topics .scroll-hint")).to_be_hidden()
    found = {"": "#topics", "devices": "#list", "pushes": "#list", "workers": "#list"}
    for view, host in found.items():
        page.evaluate(f"location.hash = '#/{view}'")
        expect(page.locator(f"{host} tbody tr").first).to_be_visible()
        watcher.faults += [f"#/{view}: {fault}" for fault in page.evaluate(CARDS)]
        check(page, watcher, f"narrow-{view or 'overview'}")
    heads = page.locator("#list thead")
    watcher.require(heads.bounding_box()["height"] <= 1, "a card stands below the heads of columns")
    page.set_viewport_size({"width": 1400, "height": 900})
    watcher.require(heads.bounding_box()["height"] >= 10, "a wide table has no heads")


@scene()
def held(page, watcher):
    """Tile, bars, topics, lists and devices agree on how many devices are held, and by which hold."""
    counts = {hold: number for hold, number in ask("GET", "/v1/stats")["devices"]["held"].items() if number > 0}
    total = sum(counts.values())
    expect(page.locator(".tile", has_text="Waiting")).to_contain_text(f"{total} held back")
    every = page.locator("#holds-all a")
    expect(every).to_have_text(f"{total} devices")
    expect(page.locator("#topics td[data-label=Held]")).to_have_text(str(total))
    expect(page.locator("#holds li")).to_have_count(len(counts))
    addresses = {every.get_attribute("href"): total}
    for bar in page.locator("#holds li").all():
        hold = bar.locator("a").get_attribute("href")
        addresses[hold] = counts.pop(hold.split("hold=")[1])
        shown = bar.locator(".count").evaluate("(node) => node.firstChild.data")
        watcher.require(shown == str(addresses[hold]), f"the bar of {hold} is not as the statistics")
    waiting = page.locator("#topics td[data-label=Waiting]")
    addresses[waiting.locator("a").get_attribute("href")] = int(waiting.inner_text())
    for address, number in addresses.items():
        page.evaluate(f"location.hash = '{address}'")
        expect(page.get_by_text(f"{number} on this page, the last.")).to_be_visible()
        expect(page.locator("#list tbody tr")).to_have_count(number)
    page.evaluate(f"location.hash = '#/device/{settings.device}'")
    expect(page.locator(".facts div", has_text="Held back")).to_have_text("Held backNo network")
    check(page, watcher, "held-device")


@scene(expected=("status of 404",))
def finds(page, watcher):
    """First digits lead to a device or a list, a topic leads to its workers, and unknown addresses say so."""
    query, title = page.locator("#query"), page.locator("#inspector-title")
    page.locator("#views a[data-view=devices]").click()
    shown = page.locator("#list tbody th a").first.inner_text()
    query.fill(shown.rstrip("…").upper())
    query.press("Enter")
    expect(title).to_contain_text("Device of")
    expect(page).to_have_url(re.compile(re.escape(f"{settings.url}/#/device/{shown.rstrip('…')}")))
    page.go_back()
    expect(page.locator("#devices-title")).to_be_visible()
    # Two devices have the same first digits.
    query.fill(settings.device[:12])
    query.press("Enter")
    expect(page.get_by_label("Token begins with")).to_have_value(settings.device[:12])
    expect(page.locator("#list tbody tr")).to_have_count(2)
    query.fill("0123456789")
    query.press("Enter")
    expect(page.get_by_text("No registered device has a token that begins with 0123456789.")).to_be_visible()
    check(page, watcher, "finds-nothing")
    page.evaluate("location.hash = '#/device/' + 'ab'.repeat(32)")
    expect(title).to_have_text("Not found")
    page.evaluate("location.hash = '#/'")
    workers(page, watcher)
    destructive(page, watcher)


def workers(page, watcher):
    page.locator("#topics td[data-label=Workers] a").click()
    rows = page.locator("#list tbody tr")
    expect(rows).to_have_count(1)
    expect(page.get_by_text("1 of 1 workers of this gateway.")).to_be_visible()
    expect(page.locator("#workers-topic")).to_have_value("com.example.dashboard")
    check(page, watcher, "workers")
    page.get_by_label("Name contains").fill("no such worker")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No listed worker is like that.")).to_be_visible()
    page.get_by_role("button", name="Clear").click()
    expect(rows).to_have_count(1)
    page.locator("#workers-state").select_option("stalled")
    expect(rows).to_have_count(0)


# The visible red buttons.
RED = """
(() => {
  const red = document.createElement("span");
  red.style.color = "var(--bad)";
  document.body.append(red);
  const of = (node, style) => getComputedStyle(node)[style];
  const found = [...document.querySelectorAll("button")].filter((node) => node.checkVisibility()
    && (of(node, "color") === of(red, "color") || of(node, "backgroundColor") === of(red, "color")));
  red.remove();
  return found.map((node) => node.textContent);
})()
"""


def destructive(page, watcher):
    """Buttons that end a wake or discard a push are red, also in dialogs; no others are."""
    def expect_red(*names):
        found = page.evaluate(RED)
        watcher.require(found == list(names), f"at {page.url} are red {found}")

    page.evaluate("location.hash = '#/devices'")
    expect(page.locator("#list tbody tr").first).to_be_visible()
    expect_red("Drop…", "Expire…")
    page.get_by_role("button", name="Drop…").click()
    confirm = page.get_by_role("button", name=re.compile("^Drop pending pushes"))
    expect(confirm).to_be_visible()
    expect_red("Drop…", "Expire…", confirm.inner_text())
    check(page, watcher, "destructive-dialog")
    page.keyboard.press("Escape")
    page.evaluate(f"location.hash = '#/device/{settings.device}'")
    expect(page.get_by_role("button", name="Drop waiting push")).to_be_visible()
    expect_red("Simulate expiration", "Drop waiting push")


@scene(wait=None, expected=("status of 404",))
def older(page, watcher):
    """A gateway without the routes of lists, events and actions: one sentence says so, and the rest works."""
    absent = {"status": 404, "json": {"reason": "BadPath", "message": "There is nothing at this path."}}
    for path in ("devices", "pushes", "events"):
        page.route(re.compile(f"/v1/{path}(\\?.*)?$"), lambda route: route.fulfill(**absent))
    page.route(re.compile("/v1/devices/[0-9a-f]+/(pending|push)$"), lambda route: route.fulfill(**absent))
    wait_for_ready(page)
    words = "This gateway is of a version that cannot"
    for name, what in (("devices", "list devices"), ("pushes", "list pushes"), ("events", "show events")):
        page.locator(f"#views a[data-view={name}]").click()
        expect(page.locator("#list [role=status]", has_text=f"{words} {what}")).to_be_visible()
        check(page, watcher, f"older-{name}")
    page.locator("#views a[data-view=devices]").click()
    page.get_by_role("button", name="Drop…").click()
    expect(page.get_by_text(f"{words} act on a list of devices")).to_be_visible()
    inspect_device(page)
    page.get_by_role("button", name="Show headers and payload").click()
    expect(page.get_by_text(f"{words} show pending work")).to_be_visible()
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_text(f"{words} send test pushes")).to_be_visible()


@scene(wait=wait_for_ready)
def bulk(page, watcher):
    """The pending pushes of all devices in a list are dropped after a person saw their number and agreed."""
    page.evaluate("location.hash = '#/devices?state=held'")
    opener = page.get_by_role("button", name="Drop…")
    opener.click()
    expect(page.get_by_role("heading", name="Drop pending pushes: 3 devices")).to_be_visible()
    page.keyboard.press("Escape")
    expect(opener).to_be_focused()
    expect(page.locator("#list tbody tr")).to_have_count(3)
    opener.click()
    page.get_by_role("button", name="Drop pending pushes (3)").click()
    expect(page.get_by_text("3 dropped.")).to_be_visible()
    expect(page.get_by_text("No device is like that.")).to_be_visible()
    page.get_by_role("button", name="Expire…").click()
    expect(page.get_by_role("heading", name="Expire what is in flight: 0 devices")).to_be_visible()


@scene(wait=wait_for_ready)
def empty(page, watcher):
    """A gateway that has seen nothing says what to do."""
    steps = page.get_by_role("region", name="First steps")
    expect(steps.locator("pre")).to_have_count(3)
    expect(steps.locator("pre").last).to_contain_text(settings.url)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    steps.get_by_role("button").last.click()
    expect(steps.get_by_role("button").last).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    watcher.require(copied == steps.locator("pre").last.inner_text(), "what is copied is not what is shown")
    expect(page.locator("#topics")).to_contain_text("No topic yet")
    expect(page.locator("#workers")).to_contain_text("No worker is subscribed")
    check(page, watcher, "empty")


@scene(wait=wait_for_ready)
def loss(page, watcher):
    """A gateway that was started with --accept-loss says which file lacked what."""
    for words in ("The gateway was started without what is missing.", "journal.sqlite", "is missing or damaged"):
        expect(page.locator("#notice")).to_contain_text(words)
    check(page, watcher, "loss")


# Renders a worker with a wake of this age in milliseconds, from an event of the gateway, and returns whether it is
# highlighted.
LATE = """
async ([lag, executionWindow]) => {
  const reader = (await fetch("/v1/live")).body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!/data: .*\\n/.test(text)) text += (await reader.read()).value;
  await reader.cancel();
  const event = JSON.parse(/data: (.*)\\n/.exec(text)[1]);
  const [worker] = event.streams.listed;
  const told = worker.executionWindow;
  Object.assign(worker, { lag, executionWindow: executionWindow ?? told });
  (await import("/dashboard/tables.js")).updateTables(event);
  return [told, document.querySelectorAll("#workers td.late").length];
}
"""


@scene()
def late(page, watcher):
    """A wake stands out that has taken more than half of what its topic gives it, be that seconds or hours."""
    for lag, window, expected in ((600, 1000, 1), (400, 1000, 0), (1_700_000, None, 0), (1_900_000, None, 1)):
        told, found = page.evaluate(LATE, [lag, window])
        is_right = (told, found) == (3_600_000, expected)
        watcher.require(is_right, f"a wake of {lag} ms of {window or told} ms stands out {found} times")


def foreign(browser):
    """Another site's page gets nothing by asking for it; a person who follows its link sees the dashboard."""
    page = browser.new_context(permissions=["local-network-access"]).new_page()
    html = f'<!doctype html><title>foreign</title><a href="{settings.url}/">dashboard</a>'
    page.route("http://localhost/", lambda route: route.fulfill(content_type="text/html", body=html))
    answers, faults = [], []
    page.on("response", lambda answer: answers.append((answer.url.removeprefix(settings.url), answer.status)))
    page.goto("http://localhost/")
    asked = [("/v1/stats", "GET"), ("/v1/live", "GET"), ("/", "GET"), ("/v1/reload", "POST")]
    for path, method in asked:
        page.evaluate(
            "([url, method]) => fetch(url, {mode: 'no-cors', method}).catch(() => null)", [settings.url + path, method]
        )
    for path, _ in asked:
        statuses = [status for url, status in answers if url == path]
        if statuses != [403]:
            faults.append(f"{path} is answered {statuses}")
    page.get_by_text("dashboard").click()
    page.wait_for_url(settings.url + "/")
    wait_for_ready(page)
    return faults


def say(scene, faults):
    print(json.dumps({"scene": scene, "faults": faults}), flush=True)


with sync_playwright() as playwright:
    chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium-headless-shell", args=["--no-sandbox"])
    for name in settings.scenes:
        try:
            found = globals()[name](chromium)
        except (AssertionError, Error) as error:
            found = [f"{type(error).__name__}: {error}"]
        for context in chromium.contexts:
            context.close()
        say(name, found)
    chromium.close()
