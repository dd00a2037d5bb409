import Engine
import Policy

/// What happened in simulations, so that a property cannot hold because nothing did.
struct SimulationCoverage {
    var launched: Int64 = 0
    var completed: Int64 = 0
    var coalesced: Int64 = 0
    var discarded = PerCase<DiscardReason>()
    var results = PerCase<WakeOutcome>()
    var stalls = 0
    var repeatedAnswers = 0
    /// Pushes that were sent again with the apns-id of their sender's, while that was remembered.
    var repeatedPushes = 0
    var lateAnswers = 0
    var slotChanges = 0
    /// Wakes that were lost while their stream went on.
    var lossesAlone = 0
    var unknownAnswers = 0
    var namedDeliveries = 0
    var emptyWakes = 0
    /// Deadlines that were put off, and wishes for that which came after the last that is granted.
    var extensions = 0
    var refusedExtensions = 0
    var drainedStreams = 0
    /// Wakes in flight when the gateway began to shut down.
    var openAtDrain = 0
    /// Looks at a device whose push a free stream would have got, but for the shutdown.
    var heldBackByDrain = 0
    var simulatedExpirations = 0
    /// Looks at a device whose push a free stream would have got, but for a pause of its topic.
    var heldBackByPause = 0
    /// Launches by people while the topic was paused, and launches that the end of a pause brought about.
    var launchesOfPaused = 0
    var launchesByResuming = 0
    var removals = 0
    /// Looks at a device that waited for a worker when no stream could take it.
    var waits = 0
    /// Launches that came at the first moment the interval allows.
    var exactLaunches = 0
    /// Launches of priority 10 that came before the interval had passed.
    var jumps = 0

    mutating func add(_ books: Books) {
        self.launched += books.launched
        self.completed += books.completed
        self.coalesced += books.coalesced
        self.discarded += books.discarded
        self.results += books.results
    }

    /// What never happened, by name.
    var missing: [String] {
        var counts: [(String, Int64)] = [
            ("launched", self.launched), ("completed", self.completed), ("coalesced", self.coalesced),
            ("repeated pushes", Int64(self.repeatedPushes)),
            ("slot changes", Int64(self.slotChanges)), ("losses alone", Int64(self.lossesAlone)),
            ("stalls", Int64(self.stalls)), ("repeated answers", Int64(self.repeatedAnswers)),
            ("late answers", Int64(self.lateAnswers)), ("unknown answers", Int64(self.unknownAnswers)),
            ("named deliveries", Int64(self.namedDeliveries)), ("empty wakes", Int64(self.emptyWakes)),
            ("simulated expirations", Int64(self.simulatedExpirations)), ("removals", Int64(self.removals)),
            ("extensions", Int64(self.extensions)), ("refused extensions", Int64(self.refusedExtensions)),
            ("drained streams", Int64(self.drainedStreams)),
            ("waits", Int64(self.waits)), ("exact launches", Int64(self.exactLaunches)),
            ("jumps", Int64(self.jumps)), ("held back by a pause", Int64(self.heldBackByPause)),
            ("launches of what is paused", Int64(self.launchesOfPaused)),
            ("launches by resuming", Int64(self.launchesByResuming)),
        ]
        counts += DiscardReason.allCases.map { ($0.rawValue, self.discarded[$0]) }
        counts += WakeOutcome.allCases.map { ($0.rawValue, self.results[$0]) }
        return counts.filter { $0.1 == 0 }.map(\.0)
    }
}
