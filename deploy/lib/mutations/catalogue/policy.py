"""The rules of pushes: when a device may launch, and what becomes of what was launched."""

from mutations.mutation import Mutation

STATE = "Sources/Pure/LaunchPolicy/DeviceState.swift"
PUSH = "Sources/Pure/LaunchPolicy/Push.swift"
# The production dispatcher and engine among faulty workers.
SIMULATION = r"WakeDispatchTests\.SimulationTests"
# The worked examples of the rules, and what they promise on random traces.
RULES = r"(SimulationTests\.(VectorTests|PromiseTests)|LaunchPolicyTests)"

MUTATIONS = [
    Mutation(
        "policy.interval",
        "launches of one device are at least the interval apart",
        STATE,
        "var spaced = self.spacing.lastLaunch + self.interval(priority, parameters)",
        "var spaced = self.spacing.lastLaunch + self.interval(priority, parameters) / 2",
        SIMULATION,
    ),
    Mutation(
        "policy.budget",
        "a device launches no more often in a window than its budget says",
        STATE,
        "guard self.spacing.windowCount >= parameters.dailyLaunches else",
        "guard self.spacing.windowCount > parameters.dailyLaunches else",
        SIMULATION,
    ),
    Mutation(
        "policy.allowance",
        "priority 10 jumps the interval only while its allowance lasts",
        STATE,
        "self.spacing.immediateTAT = max(self.spacing.immediateTAT, now) + parameters.immediateRefill",
        "self.spacing.immediateTAT = now",
        SIMULATION,
    ),
    Mutation(
        "policy.penalty",
        "a wake that is not completed in time doubles the interval",
        STATE,
        "if !wake.discardsRetry { self.penaltyRaised(parameters) }",
        "if wake.discardsRetry { self.penaltyRaised(parameters) }",
        RULES,
    ),
    Mutation(
        "policy.one-wake",
        "a device has at most one wake in flight",
        STATE,
        "self.inFlight == nil && self.hold(priority, parameters) == nil",
        "self.hold(priority, parameters) == nil",
        SIMULATION,
    ),
    Mutation(
        "policy.expiry",
        "a push that waits until its expiration is discarded then",
        STATE,
        "            expiry = moment\n",
        "            expiry = moment + parameters.launchInterval\n",
        SIMULATION,
    ),
    Mutation(
        "policy.now-or-never",
        "a push with expiration 0 launches at once or never",
        STATE,
        "            guard launches else { return .discarded }\n            expiry = now\n",
        "            expiry = launches ? now : now + parameters.defaultTTL\n",
        RULES,
    ),
    Mutation(
        "policy.passive",
        "priority 1 never wakes a device by itself",
        "Sources/Pure/LaunchPolicy/Conditions.swift",
        "case .priority: priority == .passive",
        "case .priority: false",
        RULES,
    ),
    Mutation(
        "policy.priority-of-coalesced",
        "what stands for several pushes has the highest of their priorities",
        PUSH,
        "self.priority = max(self.priority, older.priority)",
        "self.priority = min(self.priority, older.priority)",
        RULES,
    ),
    Mutation(
        "policy.life-of-coalesced",
        "what stands for several pushes lives as long as the longest of them",
        PUSH,
        "self.expiry = max(self.expiry, older.expiry)",
        "self.expiry = min(self.expiry, older.expiry)",
        RULES,
    ),
    Mutation(
        "policy.coalesced-count",
        "a wake says how many pushes it stands for",
        PUSH,
        "self.coalesced.addingReportingOverflow(older.coalesced &+ 1)",
        "self.coalesced.addingReportingOverflow(older.coalesced)",
        RULES,
    ),
    Mutation(
        "policy.attempts",
        "a push is launched no more often than the attempts it has",
        STATE,
        "guard push.attempts < parameters.maxAttempts else",
        "guard push.attempts <= parameters.maxAttempts else",
        SIMULATION,
    ),
    Mutation(
        "policy.lost-costs-nothing",
        "a wake that was lost costs the device no launch",
        STATE,
        "if let before = wake.spacingBefore { self.spacing = before }",
        "if wake.spacingBefore == nil { self.spacing = Spacing() }",
        SIMULATION,
    ),
    Mutation(
        "policy.extension",
        "a worker gets no more time for a wake than the longest extension",
        STATE,
        "let deadline = min(moment, wake.launchedAt + parameters.executionWindow + parameters.maxExtension)",
        "let deadline = min(moment, moment + parameters.maxExtension)",
        SIMULATION,
    ),
    Mutation(
        "policy.removed-device",
        "what is in flight of a device that was removed is not launched again",
        STATE,
        "inFlight?.discardsRetry = true",
        "inFlight?.discardsRetry = false",
        SIMULATION,
    ),
    Mutation(
        "policy.force-quit",
        "a device that was force quit keeps no push",
        STATE,
        "        defer { self.pending = nil }\n        return self.pending?.handle\n    }\n\n    /// The device was removed",
        "        return self.pending?.handle\n    }\n\n    /// The device was removed",
        RULES,
    ),
]
