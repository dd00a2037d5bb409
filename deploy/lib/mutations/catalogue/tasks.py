"""The rules of background tasks: lanes, their order, and how their wakes end."""

from mutations.mutation import Mutation

LANES = "Sources/Pure/LaunchPolicy/DeviceLanes.swift"
TASKS = "Sources/Pure/LaunchPolicy/DeviceLanes+Tasks.swift"
# The worked examples, and what the rules promise on random traces.
RULES = r"(SimulationTests\.(VectorTests|TaskPromiseTests)|LaunchPolicyTests)"

MUTATIONS = [
    Mutation(
        "tasks.short-lane",
        "pushes, refreshes and sessions share one lane, which holds one wake",
        LANES,
        "case .short: count > 0 || self.device.inFlight != nil",
        "case .short: count > 0",
        RULES,
    ),
    Mutation(
        "tasks.order",
        "of what may launch in a lane what waits longest goes first",
        LANES,
        "if let best, (best.since, best.arrival) < place { continue }",
        "if let best, (best.since, best.arrival) > place { continue }",
        RULES,
    ),
    Mutation(
        "tasks.processing-interval",
        "launches of processing tasks are an interval apart",
        LANES,
        "            self.tasks.lastProcessing = now\n",
        "            self.tasks.lastProcessing = lastBefore\n",
        RULES,
    ),
    Mutation(
        "tasks.earliest-beginning",
        "a task begins no earlier than it asked for",
        TASKS,
        "task.waitsSince = max(now, earliest)",
        "task.waitsSince = min(now, earliest)",
        RULES,
    ),
    Mutation(
        "tasks.progress",
        "a continued task lives by progress beyond what it has reported",
        TASKS,
        "if completed > self.tasks.inFlight[index].progress {",
        "if completed >= self.tasks.inFlight[index].progress {",
        RULES,
    ),
    Mutation(
        "tasks.cancelled",
        "a task that was cancelled does not wait again when its wake is lost",
        TASKS,
        "guard !wake.isCancelled else",
        "guard !wake.isCancelled || task.kind != .urlSession else",
        RULES,
    ),
    Mutation(
        "tasks.lost-costs-nothing",
        "a wake that was lost costs what it was charged for nothing",
        TASKS,
        "case .processing(let lastBefore): self.tasks.lastProcessing = lastBefore",
        "case .processing: break",
        RULES,
    ),
    Mutation(
        "tasks.interrupted",
        "a processing task ends when what it cannot do without is gone",
        TASKS,
        "return !self.holds(wake.task, at: now, parameters).isSubset(of: harmless)",
        "return self.holds(wake.task, at: now, parameters).isSubset(of: []) && harmless.isEmpty",
        RULES,
    ),
    Mutation(
        "tasks.habits",
        "three of the last seven days make an hour habitual",
        "Sources/Pure/LaunchPolicy/Usage.swift",
        "if days >= Self.habit {",
        "if days > Self.habit {",
        RULES,
    ),
    Mutation(
        "tasks.waiting-max",
        "no more requests of a kind wait than the platform lets",
        TASKS,
        "if others >= task.kind.waitingMax {",
        "if others > task.kind.waitingMax {",
        RULES,
    ),
]
