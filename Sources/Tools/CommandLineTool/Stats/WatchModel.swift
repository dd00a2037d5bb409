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
        if let last = self.samples.last, sample[.at] <= last[.at] || sample[.accepted] < last[.accepted] {
            self.samples.removeAll { $0[.at] >= sample[.at] || $0[.accepted] > sample[.accepted] }
        }
        self.samples.append(sample)
        if self.samples.count > Self.samplesMax { self.samples.removeFirst() }
        var seen: Set<String> = []
        for topic in event["topics"]?["listed"]?.elements ?? [] {
            let key = "topic \(topic["topic"]?.text ?? "")"
            seen.insert(key)
            self.count(key, sample[.at], [topic["accepted"]?.number ?? 0, topic["launched"]?.number ?? 0])
        }
        for stream in event["streams"]?["listed"]?.elements ?? [] {
            let key = "stream \(stream["stream"]?.text ?? "")"
            seen.insert(key)
            self.count(key, sample[.at], [stream["wakes"]?.number ?? 0])
        }
        self.counters = self.counters.filter { seen.contains($0.key) }
    }

    /// Records that the gateway does not answer.
    package mutating func lost(_ trouble: String) { self.trouble = trouble }

    /// Returns the rates per second of a topic's counters (pushes, launches) or a stream's counter (wakes); nil if
    /// unknown.
    package func rates(_ key: String) -> [Double]? { self.counters[key]?.rates }

    /// Returns the rate per second of a counter for each sample; nil for a gap in the samples.
    package func rates(of counter: WatchSample.Field) -> [Double?] {
        zip(self.samples, self.samples.dropFirst()).map { before, now in
            let seconds = (now[.at] - before[.at]) / 1000
            guard seconds > 0, seconds < 4 else { return nil }
            return max(0, now[counter] - before[counter]) / seconds
        }
    }

    /// Returns the mean rate of the last five samples, which are a second apart.
    package func rate(of counter: WatchSample.Field) -> Double? {
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
    /// The name of a number, as in `GET /v1/samples`.
    package enum Field: String, CaseIterable, Sendable {
        /// The time in milliseconds since 1970.
        case at
        case accepted, launched, completed, coalesced, rejected, pending, inFlight
    }

    private var values: [Field: Double] = [:]

    /// Creates a sample from the statistics of all topics or of one topic.
    package init(at: Double, stats: JSONValue) {
        for field in Field.allCases { self.values[field] = stats["pushes"]?[field.rawValue]?.number }
        self.values[.at] = at
        self.values[.launched] = stats["wakes"]?["launched"]?.number
        self.values[.rejected] = stats["pushes"]?["rejected"]?.members.reduce(0) { $0 + ($1.value.number ?? 0) }
    }

    /// Creates a sample from a row of `GET /v1/samples`, whose columns `fields` names; nil if the row is malformed.
    package init?(row: [JSONValue], fields: [String]) {
        for (name, value) in zip(fields, row) {
            if let field = Field(rawValue: name) { self.values[field] = value.number }
        }
        guard self.values.count == Field.allCases.count else { return nil }
    }

    package subscript(field: Field) -> Double { self.values[field] ?? 0 }
}
