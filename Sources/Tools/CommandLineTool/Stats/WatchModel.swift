package import Wire

/// The data of a view: the last known state of the gateway, its history, and whether it can be reached.
package struct WatchModel: Sendable {
    /// The maximum number of samples: one for each column of the widest terminals.
    private static let samplesMax = 400

    /// The location of the gateway, for the title of the view.
    package let title: String
    /// The last event; nil if there was none.
    package private(set) var event: JSONValue?
    package private(set) var samples: [WatchSample] = []
    /// The reason why the gateway does not answer; nil while it answers.
    package private(set) var trouble: String?
    /// The counters of topics (pushes, launches) and streams (wakes), for their rates.
    private var counters: [String: (at: Double, values: [Double], rates: [Double]?)] = [:]

    package init(title: String) {
        self.title = title
    }

    /// Sets the history from an answer of `GET /v1/samples`.
    package mutating func past(_ answer: JSONValue) {
        let fields = answer["fields"]?.elements.compactMap(\.text) ?? []
        self.samples = (answer["samples"]?.elements ?? []).suffix(Self.samplesMax).compactMap {
            WatchSample(row: $0.elements, fields: fields)
        }
    }

    /// Sets the gateway's current state, and adds a sample.
    package mutating func take(_ event: JSONValue) {
        self.event = event
        self.trouble = nil
        let sample = WatchSample(at: event["at"]?.number ?? 0, stats: event["stats"] ?? .null)
        if let last = self.samples.last, sample.at <= last.at || sample.accepted < last.accepted {
            self.samples.removeAll { $0.at >= sample.at || $0.accepted > sample.accepted }
        }
        self.samples.append(sample)
        if self.samples.count > Self.samplesMax { self.samples.removeFirst() }
        var seen: Set<String> = []
        for topic in event["topics"]?["listed"]?.elements ?? [] {
            let key = "topic \(topic["topic"]?.text ?? "")"
            seen.insert(key)
            self.count(key, sample.at, [topic["accepted"]?.number ?? 0, topic["launched"]?.number ?? 0])
        }
        for stream in event["streams"]?["listed"]?.elements ?? [] {
            let key = "stream \(stream["stream"]?.text ?? "")"
            seen.insert(key)
            self.count(key, sample.at, [stream["wakes"]?.number ?? 0])
        }
        self.counters = self.counters.filter { seen.contains($0.key) }
    }

    /// Records that the gateway does not answer.
    package mutating func lost(_ trouble: String) { self.trouble = trouble }

    /// Returns the rates per second of a topic's counters (pushes, launches) or a stream's counter (wakes); nil if
    /// unknown.
    package func rates(_ key: String) -> [Double]? { self.counters[key]?.rates }

    /// Returns the rate per second of a counter for each sample; nil for a gap in the samples.
    package func rates(of counter: KeyPath<WatchSample, Double>) -> [Double?] {
        zip(self.samples, self.samples.dropFirst()).map { before, now in
            let seconds = (now.at - before.at) / 1000
            guard seconds > 0, seconds < 4 else { return nil }
            return max(0, now[keyPath: counter] - before[keyPath: counter]) / seconds
        }
    }

    /// Returns the mean rate of the last five samples, which are a second apart.
    package func rate(of counter: KeyPath<WatchSample, Double>) -> Double? {
        let last = self.rates(of: counter).suffix(5).compactMap(\.self)
        return last.isEmpty ? nil : last.reduce(0, +) / Double(last.count)
    }

    private mutating func count(_ key: String, _ at: Double, _ values: [Double]) {
        guard let before = self.counters[key] else {
            self.counters[key] = (at, values, nil)
            return
        }
        guard at > before.at else { return }
        let now = zip(values, before.values).map { max(0, $0 - $1) / (at - before.at) * 1000 }
        let rates = before.rates.map { zip($0, now).map { $0 * 0.6 + $1 * 0.4 } } ?? now
        self.counters[key] = (at, values, rates)
    }
}

/// The counters and gauges of the gateway at one time.
package struct WatchSample: Sendable {
    /// The time in milliseconds since 1970.
    package let at: Double
    package let accepted: Double
    package let launched: Double
    package let completed: Double
    package let coalesced: Double
    package let rejected: Double
    package let pending: Double
    package let inFlight: Double

    /// Creates a sample from the statistics of all topics or of one topic.
    package init(at: Double, stats: JSONValue) {
        func number(_ group: String, _ name: String) -> Double { stats[group]?[name]?.number ?? 0 }
        self.at = at
        self.accepted = number("pushes", "accepted")
        self.launched = number("wakes", "launched")
        self.completed = number("pushes", "completed")
        self.coalesced = number("pushes", "coalesced")
        self.rejected = stats["pushes"]?["rejected"]?.members.reduce(0) { $0 + ($1.value.number ?? 0) } ?? 0
        self.pending = number("pushes", "pending")
        self.inFlight = number("pushes", "inFlight")
    }

    /// Creates a sample from a row of `GET /v1/samples`, whose columns `fields` names; nil if the row is malformed.
    package init?(row: [JSONValue], fields: [String]) {
        func number(_ name: String) -> Double? {
            fields.firstIndex(of: name).flatMap { $0 < row.count ? row[$0].number : nil }
        }
        guard let at = number("at"), let accepted = number("accepted"), let launched = number("launched"),
            let completed = number("completed"), let coalesced = number("coalesced"),
            let rejected = number("rejected"), let pending = number("pending"), let inFlight = number("inFlight")
        else { return nil }
        self.at = at
        self.accepted = accepted
        self.launched = launched
        self.completed = completed
        self.coalesced = coalesced
        self.rejected = rejected
        self.pending = pending
        self.inFlight = inFlight
    }
}
