"""What a day came to, worked out from the devices' lives and their launches alone."""

from bisect import bisect_left
from dataclasses import dataclass
from statistics import median

from fleet.handlers import Launch, Outcome
from fleet.population import BEGIN, DAY, END, HOUR, Device

# The parameters' defaults, as the article "The rules of background tasks" has them, in seconds.
LAUNCH_INTERVAL = 900
DAILY_LAUNCHES = 96
BUDGET_WINDOW = DAY
PROCESSING_INTERVAL = 3600
REFRESH_LEAD = 900
# So often in a week makes an hour habitual.
HABIT = 3
WEEK_HOURS = 168

KINDS = ("push", "appRefresh", "processing")


@dataclass
class Figures:
    # By kind, the launches in each hour of the day.
    by_hour: dict[str, list[int]]
    # The most charged launches of one device in a budget window.
    most_charged: int
    # The shortest time between two charged launches of a device of which no priority 10 brought the second forward.
    shortest_interval: float
    shortest_processing: float
    # Refreshes and processing that launched while the device was in use, without network, or without the charger.
    misplaced: int
    habitual_uses: int
    # Of these, those that had a refresh within the hour before.
    refreshed: int
    # Those that had one since the lead of their hour began, which is what a refresh is put off for.
    refreshed_in_lead: int
    median_lead_minutes: float
    pushes_per_launch: float
    # What is wrong with the summary's books; empty when they balance.
    books: list[str]

    @property
    def refreshed_percent(self) -> float:
        return 100 * self.refreshed / max(self.habitual_uses, 1)


def figures(devices: list[Device], outcome: Outcome) -> Figures:
    own = {device.name: outcome.launches.get(device.name, []) for device in devices}
    of_day = [launch for launches in own.values() for launch in launches if BEGIN <= launch.moment < END]
    leads = [lead for device in devices for lead in leads_of(device, own[device.name])]
    charged = {device.name: charges(device, own[device.name]) for device in devices}
    pushed = [launch.pushes for launch in of_day if launch.kind == "push"]
    processing = [[launch.moment for launch in own[name] if launch.kind == "processing"] for name in own]
    return Figures(
        by_hour={kind: by_hour(launch.moment for launch in of_day if launch.kind == kind) for kind in KINDS},
        most_charged=max(fullest_window([moment for moment, _ in moments]) for moments in charged.values()),
        shortest_interval=min(
            (
                after - before
                for moments in charged.values()
                for (before, _), (after, urgent) in zip(moments, moments[1:])
                if not urgent
            ),
            default=float("inf"),
        ),
        shortest_processing=min(
            (after - before for moments in processing for before, after in zip(moments, moments[1:])),
            default=float("inf"),
        ),
        misplaced=sum(is_misplaced(device, launch) for device in devices for launch in own[device.name]),
        habitual_uses=len(leads),
        refreshed=sum(lead <= HOUR for lead, _ in leads),
        refreshed_in_lead=sum(lead <= since_hour + REFRESH_LEAD for lead, since_hour in leads),
        median_lead_minutes=median(lead for lead, _ in leads) / 60 if leads else float("inf"),
        pushes_per_launch=sum(pushed) / max(len(pushed), 1),
        books=books(outcome.summary),
    )


def by_hour(moments) -> list[int]:
    hours = [0] * 24
    for moment in moments:
        hours[int(moment % DAY // HOUR)] += 1
    return hours


def leads_of(device: Device, launches: list[Launch]) -> list[tuple[float, int]]:
    """For each use of the day in an hour that is habitual by then, how long before it the last refresh was, and how
    long before it the hour began."""
    refreshes = [launch.moment for launch in launches if launch.kind == "appRefresh"]
    leads = []
    for number, use in enumerate(device.uses):
        if not BEGIN <= use.begin < END:
            continue
        hours = {before.begin // HOUR for before in device.uses[:number]}
        latest = max(hours, default=0)
        days = sum(hour > latest - WEEK_HOURS and (hour - use.begin // HOUR) % 24 == 0 for hour in hours)
        if days < HABIT:
            continue
        earlier = bisect_left(refreshes, use.begin)
        lead = use.begin - refreshes[earlier - 1] if earlier > 0 else float("inf")
        leads.append((lead, use.begin % HOUR))
    return leads


def charges(device: Device, launches: list[Launch]) -> list[tuple[float, bool]]:
    """The launches that cost something, and whether a push of priority 10 may have brought each forward.

    Nothing is said of a launch at the very moment at which a use begins or ends.
    """
    charged = []
    arrived = 0
    for launch in launches:
        if launch.kind == "processing":
            continue
        urgent = False
        if launch.kind == "push":
            # No worker of the fleet fails a push, so that each is launched once, in the order of arrival.
            carried = device.pushes[arrived : arrived + launch.pushes]
            urgent = any(push.priority == 10 for push in carried)
            arrived += launch.pushes
        if not any(launch.moment in use for use in device.uses):
            charged.append((launch.moment, urgent))
    return charged


def fullest_window(moments: list[float]) -> int:
    """The most of `moments` in a budget window, which begins with the first launch after the end of the one before."""
    most = count = 0
    begin = float("-inf")
    for moment in moments:
        if moment >= begin + BUDGET_WINDOW:
            begin, count = moment, 0
        count += 1
        most = max(most, count)
    return most


def is_misplaced(device: Device, launch: Launch) -> bool:
    if launch.kind == "push":
        return False

    def within(spans) -> bool:
        return any(span.begin < launch.moment < span.end for span in spans)

    on_charger = any(launch.moment in span for span in device.charged)
    return within(device.uses) or within(device.offline) or (launch.kind == "processing" and not on_charger)


def books(summary: dict[str, int]) -> list[str]:
    def total(prefix: str, but: str = "") -> int:
        return sum(count for name, count in summary.items() if name.startswith(prefix) and name != but)

    def count(name: str) -> int:
        return summary.get(name, 0)

    wrong = []
    ended = count("completed") + count("coalesced") + total("discarded.") + count("pending") + count("inFlight")
    if count("accepted") != ended:
        wrong.append(f"{count('accepted')} pushes were accepted, of {ended} it is known what became of them")
    gone = count("tasks.replaced") + count("tasks.cancelled") + total("tasks.discarded.")
    gone += total("tasks.results.", but="tasks.results.lost") + count("tasks.waiting") + count("tasks.inFlight")
    if count("tasks.submitted") != gone:
        wrong.append(f"{count('tasks.submitted')} requests were submitted, of {gone} it is known what became of them")
    return wrong
