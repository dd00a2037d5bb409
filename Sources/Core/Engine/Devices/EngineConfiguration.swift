package import Policy
package import Wire

/// How an engine is set up.
package struct EngineConfiguration: Sendable {
    /// The policy of topics that have none of their own.
    package var policy = Parameters()
    /// The policy of topics by name.
    package var topicPolicies: [String: Parameters] = [:]
    /// Which identifiers of background tasks workers may submit.
    package var permittedTasks = PermittedTasks.none
    /// Whether the first push registers an unknown token.
    package var openRegistration = false
    /// The most tokens kept, removed ones included; ten million take 3 GB idle, and 9 GB with a push
    /// waiting on each.
    package var devicesMax = 10_000_000
    /// The most tokens in one topic; all, as a gateway may serve one app alone.
    package var devicesPerTopicMax = 10_000_000
    /// The most topics kept; ten thousand, as a topic is an app.
    package var topicsMax = 10_000
    /// The most streams of workers that name one device; 0 is no limit.
    package var streamsPerDeviceMax = 64
    /// The most bytes of pushes that wait or are in flight.
    package var pendingBytesMax = Int.max
    /// The most bytes of one topic's pushes.
    package var pendingBytesPerTopicMax = Int.max
    /// The most requests of background tasks and sessions that wait or run; two for each of `devicesMax`.
    package var taskRequestsMax = 20_000_000
    /// The most of them in one topic.
    package var taskRequestsPerTopicMax = 20_000_000
    /// The most bytes of what those are named and entitled, and of the ids of session events.
    package var taskBytesMax = Int.max
    /// The most of these bytes in one topic.
    package var taskBytesPerTopicMax = Int.max
    /// How many pushes one device takes.
    package var pushRate = PushRate()

    package init() {}

    /// The policy of the topic of this name.
    func parameters(topic name: String) -> Parameters { self.topicPolicies[name] ?? self.policy }
}

/// The bounds that the engine and its dispatcher meet, by their names in the configuration.
package enum EngineLimit: String, Sendable, CaseIterable {
    /// A device was not registered.
    case devicesMax
    /// A device was not registered.
    case devicesPerTopicMax
    /// A device or a stream was not taken, whose topic is new.
    case topicsMax
    /// A push was refused.
    case pushesPerDeviceMax
    /// A push was refused.
    case pendingBytesMax
    /// A push was refused.
    case pendingTopicPercentMax
    /// A stream got no more wakes until it answered some.
    case wakeBytesPerStreamMax
    /// A stream was not taken, since as many name a device that it names.
    case streamsPerDeviceMax
    /// A submission of a background task was refused.
    case taskRequestsMax
    /// A submission of a background task was refused.
    case taskBytesMax
    /// A submission of a background task was refused.
    case taskTopicPercentMax
}

extension EngineLimit: CountedCase {
    package typealias Counts = SIMD16<Int64>
}

extension Refusal {
    /// The bound that was met; nil when another reason applies.
    package var limit: EngineLimit? {
        switch self {
        case .unknown, .unregistered, .otherTopic: nil
        case .tooManyDevices: .devicesMax
        case .tooManyDevicesOfTopic: .devicesPerTopicMax
        case .tooManyTopics: .topicsMax
        case .tooMany: .pushesPerDeviceMax
        case .noMemory: .pendingBytesMax
        case .noMemoryForTopic: .pendingTopicPercentMax
        }
    }
}

/// Which identifiers of background tasks the workers of each topic may submit.
package struct PermittedTasks: Hashable, Sendable {
    /// The most patterns that one topic names.
    package static let patternsPerTopicMax = 1000

    /// Nothing is permitted but what a topic names.
    package static let none = PermittedTasks(permitsUnnamed: false)
    /// Everything is permitted, but to a topic that names what is.
    package static let all = PermittedTasks(permitsUnnamed: true)

    /// What one topic names.
    private struct Topic: Hashable {
        /// As they were written, to be shown.
        let patterns: [IdentifierPattern]
        let identifiers: Set<Substring>
        /// What patterns that stand for several begin with, each up to its dot.
        let beginnings: Set<Substring>
        /// The identifiers and beginnings, in ascending order.
        let stems: [Substring]

        init(_ patterns: [IdentifierPattern]) {
            self.patterns = patterns
            self.identifiers = Set(patterns.filter(\.isExact).map { $0.stem[...] })
            self.beginnings = Set(patterns.filter { !$0.isExact }.map { $0.stem[...] })
            self.stems = (self.identifiers.union(self.beginnings)).sorted()
        }

        func permits(_ identifier: String) -> Bool {
            if self.identifiers.contains(identifier[...]) { return true }
            guard !self.beginnings.isEmpty else { return false }
            var end = identifier.startIndex
            while let dot = identifier[end...].firstIndex(of: ".") {
                end = identifier.index(after: dot)
                guard end < identifier.endIndex else { return false }
                if self.beginnings.contains(identifier[..<end]) { return true }
            }
            return false
        }

        /// Returns true if one identifier for which `pattern` stands is permitted.
        func permitsAny(of pattern: IdentifierPattern) -> Bool {
            guard !pattern.isExact else { return self.permits(pattern.text) }
            // Its stem ends with a dot, so a beginning that covers the stem covers this identifier.
            if self.permits(pattern.stem + "x") { return true }
            var (low, high) = (0, self.stems.count)
            while low < high {
                let middle = (low + high) / 2
                if self.stems[middle] < pattern.stem[...] { low = middle + 1 } else { high = middle }
            }
            // An identifier that equals the stem is none for which the pattern stands.
            if low < self.stems.count, self.stems[low] == pattern.stem[...] { low += 1 }
            return low < self.stems.count && self.stems[low].utf8.starts(with: pattern.stem.utf8)
        }
    }

    private let permitsUnnamed: Bool
    private var topics: [String: Topic] = [:]

    private init(permitsUnnamed: Bool) {
        self.permitsUnnamed = permitsUnnamed
    }

    /// What the topic of this name permits, or nil when it has what all others have.
    package subscript(topic: String) -> [IdentifierPattern]? {
        get { self.topics[topic]?.patterns }
        set { self.topics[topic] = newValue.map { Topic($0) } }
    }

    /// The topics that name what they permit.
    package var namedTopics: some Collection<String> { self.topics.keys }

    /// Whether a topic's workers may submit tasks of this identifier.
    ///
    /// The cost is one look-up for each dot of the identifier, however many patterns there are. What is no identifier
    /// is never permitted.
    package func permits(_ identifier: String, topic: String) -> Bool {
        guard self.permitsUnnamed || !self.topics.isEmpty, IdentifierPattern.isIdentifier(identifier.utf8) else {
            return false
        }
        return self.topics[topic]?.permits(identifier) ?? self.permitsUnnamed
    }

    /// Returns the warning for a worker of `topic` that takes tasks of these patterns, or nil if the topic permits some
    /// identifier of each.
    package func warning(
        topic: String,
        tasks: [IdentifierPattern],
        worker: String
    ) -> SubscriptionWarning? {
        guard !tasks.isEmpty else { return nil }
        guard let permitted = self.topics[topic] else {
            let problem = self.permitsUnnamed ? SubscriptionWarning.Problem.everythingPermitted : .notPermitted
            return SubscriptionWarning(problem: problem, topic: topic, tasks: tasks, worker: worker)
        }
        let refused = tasks.filter { !permitted.permitsAny(of: $0) }
        guard !refused.isEmpty else { return nil }
        return SubscriptionWarning(problem: .notPermitted, topic: topic, tasks: refused, worker: worker)
    }
}

/// The warning of an accepted subscription that may wait in vain for some of its identifiers.
package struct SubscriptionWarning: Hashable, Sendable {
    package enum Problem: Hashable, Sendable {
        /// The topic permits no identifier of these patterns, so that no such task can be submitted.
        case notPermitted
        /// Every identifier is permitted here, as in `wakegate dev`, and would not be elsewhere.
        case everythingPermitted
    }

    package let problem: Problem
    package let topic: String
    /// The patterns that the warning is about, in the order of the subscription.
    package let tasks: [IdentifierPattern]
    /// The label of the stream.
    package let worker: String

    /// The most patterns that the text names: a header has to pass through proxies.
    package static let namesMax = 8

    /// The patterns, of more than `namesMax` the first.
    package var names: String {
        let names = self.tasks.prefix(Self.namesMax).map(\.text).joined(separator: ", ")
        let others = self.tasks.count - Self.namesMax
        return others > 0 ? "\(names) and \(others) more" : names
    }

    /// The remedy, in one sentence without a full stop.
    package var remedy: String {
        switch self.problem {
        case .notPermitted: "add them to topics.\(self.topic).tasks of the gateway's configuration"
        case .everythingPermitted: "list them in topics.\(self.topic).tasks of its configuration before production"
        }
    }

    /// The value of the `wakegate-warning` header: a name that never changes, a semicolon, the problem, another
    /// semicolon, and the remedy.
    package var text: String {
        switch self.problem {
        case .notPermitted:
            "task-not-permitted; \(self.topic) does not permit \(self.names), so no such task can be submitted; "
                + self.remedy
        case .everythingPermitted:
            "every-task-permitted; this gateway permits every identifier, and wakegate serve would not permit "
                + "\(self.names); \(self.remedy)"
        }
    }
}

/// How many pushes one device takes: so many within a window, which the first of them opens.
///
/// It is no part of the policy: what is refused was never accepted. Nothing of it is kept across a restart.
package struct PushRate: Hashable, Sendable {
    /// The most pushes within a window, at most 65,535; 0 is no limit.
    package var pushesMax = 6000
    /// How long a window is, in seconds.
    package var seconds = 60

    package init() {}
}

extension DeviceRecord {
    /// Why the device takes no push now; nil while there is room in its window.
    func rateRefusal(_ rate: PushRate, at now: Instant) -> Refusal? {
        guard rate.pushesMax > 0, !self.isRateWindowOver(rate, at: now), Int(self.rateWindowCount) >= rate.pushesMax
        else { return nil }
        let end = Int64(self.rateWindowStart) + Int64(rate.seconds)
        return .tooMany(until: Instant(milliseconds: end * 1000))
    }

    /// Counts a push.
    ///
    /// - Throws: `tooMany` when the window has no room for it; it is then not counted.
    mutating func countRate(_ rate: PushRate, at now: Instant) throws(Refusal) {
        guard rate.pushesMax > 0 else { return }
        if self.isRateWindowOver(rate, at: now) {
            self.rateWindowStart = Self.seconds(now)
            self.rateWindowCount = 0
        } else if let refusal = self.rateRefusal(rate, at: now) {
            throw refusal
        }
        self.rateWindowCount += 1
    }

    private func isRateWindowOver(_ rate: PushRate, at now: Instant) -> Bool {
        Int(Self.seconds(now) &- self.rateWindowStart) >= rate.seconds
    }

    private static func seconds(_ moment: Instant) -> UInt32 {
        UInt32(truncatingIfNeeded: moment.milliseconds / 1000)
    }
}

/// Which launch policies were in force when: each has a number, one more than the last, across restarts too.
///
/// A policy is what holds for all topics and for each of them. Of the past the last `keptMax` are known.
package struct PolicyVersions: Hashable, Sendable {
    /// How many are remembered.
    package static let keptMax = 32

    package struct Version: Hashable, Sendable {
        /// From 1.
        package let number: UInt32
        /// Since when it is in force, in policy time.
        package let since: Instant
        /// What tells its parameters from others.
        let fingerprint: UInt64
    }

    /// From the oldest to the one in force.
    private var versions: [Version] = []

    package init() {}

    /// The version in force; nil before the first.
    package var current: Version? { self.versions.last }

    /// The number of the one that was in force at `moment`; nil when that is not remembered.
    package func number(at moment: Instant) -> UInt32? {
        self.versions.last { $0.since <= moment }?.number
    }

    /// The policies of a configuration are in force from `now` on.
    ///
    /// - Returns: whether they are others than before.
    package mutating func begin(_ configuration: EngineConfiguration, at now: Instant) -> Bool {
        let fingerprint = Self.fingerprint(configuration)
        guard fingerprint != self.current?.fingerprint else { return false }
        let number = (self.current?.number ?? 0) &+ 1
        self.versions.append(Version(number: number, since: now, fingerprint: fingerprint))
        if self.versions.count > Self.keptMax { self.versions.removeFirst() }
        return true
    }

    /// 64 bits of FNV-1a over every parameter and every topic that has others than all.
    ///
    /// A parameter that came later counts where it is not the default: a policy that names none of them has the
    /// fingerprint that it had before there were any.
    private static func fingerprint(_ configuration: EngineConfiguration) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        func mix(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        func mix(_ parameter: PolicyParameter, _ parameters: Parameters) {
            for byte in parameter.rawValue.utf8 { mix(byte) }
            let bits = parameter.value(in: parameters).bitPattern
            for shift in stride(from: 0, to: 64, by: 8) { mix(UInt8(truncatingIfNeeded: bits >> shift)) }
        }
        let defaults = Parameters()
        func mix(_ parameters: Parameters) {
            for parameter in PolicyParameter.allCases
            where !PolicyParameter.addedLater.contains(parameter)
                || parameter.value(in: parameters) != parameter.value(in: defaults)
            {
                mix(parameter, parameters)
            }
        }
        mix(configuration.policy)
        for (topic, parameters) in configuration.topicPolicies.sorted(by: { $0.key < $1.key })
        where parameters != configuration.policy {
            // No name of a topic holds a zero.
            for byte in topic.utf8 { mix(byte) }
            mix(0)
            mix(parameters)
        }
        return hash
    }
}

/// How they are kept: number (4 bytes), since when (8) and fingerprint (8) of each, from the oldest to the newest.
extension PolicyVersions {
    private static let versionBytes = 20

    /// The versions that `store` wrote; nil when it did not, or when they do not follow each other.
    package init?(stored bytes: ByteView) {
        guard bytes.count % Self.versionBytes == 0, bytes.count / Self.versionBytes <= Self.keptMax else { return nil }
        var reader = RecordReader(bytes)
        for _ in 0..<bytes.count / Self.versionBytes {
            let number = reader.integer(UInt32.self)
            let since = reader.moment()
            if let last = self.versions.last, number <= last.number || since < last.since { return nil }
            self.versions.append(Version(number: number, since: since, fingerprint: reader.integer()))
        }
        guard reader.isWhole else { return nil }
    }

    package func store(to buffer: inout ByteBuffer) {
        for version in self.versions {
            buffer.appendLittleEndian(version.number)
            buffer.appendLittleEndian(version.since.milliseconds)
            buffer.appendLittleEndian(version.fingerprint)
        }
    }
}

extension Parameters {
    /// What tells these parameters from others in every process: 64 bits mixed from the names and values of those that
    /// are not the default, so that a parameter more changes nothing where nobody sets it.
    var digest: UInt64 {
        var hash: UInt64 = 0xE703_7ED1_A0B4_28DB
        func mix(_ word: UInt64) { hash = FoldedProduct.of(hash ^ word, 0xA076_1D64_78BD_642F) }
        let defaults = Parameters()
        for parameter in PolicyParameter.allCases {
            let value = parameter.value(in: self)
            guard value != parameter.value(in: defaults) else { continue }
            for byte in parameter.rawValue.utf8 { mix(UInt64(byte)) }
            mix(value.bitPattern)
        }
        return hash
    }
}
