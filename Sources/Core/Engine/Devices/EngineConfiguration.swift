package import Policy
package import Wire

/// The configuration of an engine.
package struct EngineConfiguration: Sendable {
    /// The policy of topics without their own.
    package var policy = Parameters()
    /// Policies by topic name.
    package var topicPolicies: [String: Parameters] = [:]
    /// The identifiers of background tasks that workers may submit.
    package var permittedTasks = PermittedTasks.none
    /// True if a push to an unknown token registers the token.
    package var openRegistration = false
    /// The maximum number of tokens, including removed tokens. Ten million take 3 GB when idle, and 6 GB with one
    /// pending push of 228 bytes each.
    package var devicesMax = 10_000_000
    /// The maximum number of tokens in one topic. The default is that of `devicesMax`, because a gateway may serve a
    /// single app.
    package var devicesPerTopicMax = 10_000_000
    /// The maximum number of topics. A topic corresponds to an app.
    package var topicsMax = 10_000
    /// The maximum number of worker streams that name one device; 0 means unlimited.
    package var streamsPerDeviceMax = 64
    /// The maximum bytes of pushes that are pending or in flight.
    package var pendingBytesMax = Int.max
    /// The maximum bytes of one topic's pushes.
    package var pendingBytesPerTopicMax = Int.max
    /// The maximum number of requests and sessions that are pending or running; by default two per device.
    package var taskRequestsMax = 20_000_000
    /// The maximum number of requests and sessions of one topic that are pending or running.
    package var taskRequestsPerTopicMax = 20_000_000
    /// The maximum bytes of names and details of requests and sessions, and of the ids of session events.
    package var taskBytesMax = Int.max
    /// The maximum of these bytes in one topic.
    package var taskBytesPerTopicMax = Int.max
    /// The rate limit of pushes to one device.
    package var pushRate = PushRate()

    package init() {}

    /// Returns the policy of the topic of this name.
    func parameters(topic name: String) -> Parameters { self.topicPolicies[name] ?? self.policy }
}

/// The limits that the engine and its dispatcher enforce, by their names in the configuration. Each case documents the
/// effect of reaching the limit.
package enum EngineLimit: String, Sendable, CaseIterable {
    /// The registration of a device is refused.
    case devicesMax
    /// The registration of a device is refused.
    case devicesPerTopicMax
    /// A device or stream is refused if its topic is new.
    case topicsMax
    /// A push is refused.
    case pushesPerDeviceMax
    /// A push is refused.
    case pendingBytesMax
    /// A push is refused.
    case pendingTopicPercentMax
    /// A stream gets no more wakes until it answers some.
    case wakeBytesPerStreamMax
    /// A stream is refused, because the maximum number of streams already name one of its devices.
    case streamsPerDeviceMax
    /// The submission of a background task is refused.
    case taskRequestsMax
    /// The submission of a background task is refused.
    case taskBytesMax
    /// The submission of a background task is refused.
    case taskTopicPercentMax
}

extension EngineLimit: CountedCase {
    package typealias Counts = SIMD16<Int64>
}

extension Refusal {
    /// The limit that was reached; nil if the refusal has another reason.
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

/// The identifiers of background tasks that the workers of each topic may submit.
package struct PermittedTasks: Hashable, Sendable {
    /// The maximum number of patterns in one topic's list. Each submission is compared with all of them, on the thread
    /// that processes pushes.
    package static let patternsPerTopicMax = 1000

    /// Permits only the listed identifiers of each topic.
    package static let none = PermittedTasks(permitsUnlistedTopics: false)
    /// Permits every identifier in topics without a list, and the listed identifiers in the others.
    package static let all = PermittedTasks(permitsUnlistedTopics: true)

    private let permitsUnlistedTopics: Bool
    private var topics: [String: [IdentifierPattern]] = [:]

    private init(permitsUnlistedTopics: Bool) {
        self.permitsUnlistedTopics = permitsUnlistedTopics
    }

    /// The patterns listed for the topic of this name; nil if it has no list.
    package subscript(topic: String) -> [IdentifierPattern]? {
        get { self.topics[topic] }
        set { self.topics[topic] = newValue }
    }

    /// The topics with a list.
    package var listedTopics: some Collection<String> { self.topics.keys }

    /// Returns true if a topic's workers may submit tasks with this identifier. Malformed identifiers are never
    /// permitted.
    package func permits(_ identifier: String, topic: String) -> Bool {
        guard IdentifierPattern.isIdentifier(identifier.utf8) else { return false }
        return self.topics[topic]?.contains { $0.matches(identifier) } ?? self.permitsUnlistedTopics
    }

    /// Returns the warning for a worker of `topic` that subscribes to these patterns; nil if the topic permits at least
    /// one identifier of each.
    package func warning(
        topic: String,
        tasks: [IdentifierPattern],
        worker: String
    ) -> SubscriptionWarning? {
        guard !tasks.isEmpty else { return nil }
        guard let permitted = self.topics[topic] else {
            let problem = self.permitsUnlistedTopics ? SubscriptionWarning.Problem.everythingPermitted : .notPermitted
            return SubscriptionWarning(problem: problem, topic: topic, tasks: tasks, worker: worker)
        }
        let refused = tasks.filter { task in !permitted.contains { $0.overlaps(task) } }
        guard !refused.isEmpty else { return nil }
        return SubscriptionWarning(problem: .notPermitted, topic: topic, tasks: refused, worker: worker)
    }
}

/// A warning for an accepted subscription that can never receive tasks of some of its patterns.
package struct SubscriptionWarning: Hashable, Sendable {
    package enum Problem: Hashable, Sendable {
        /// The topic permits no identifier of these patterns, so no such task can be submitted.
        case notPermitted
        /// This gateway permits every identifier, as `wakegate dev` does. A production gateway would not.
        case everythingPermitted
    }

    package let problem: Problem
    package let topic: String
    /// The patterns that cause the warning, in the order of the subscription.
    package let tasks: [IdentifierPattern]
    /// The label of the stream.
    package let worker: String

    /// The maximum number of patterns in the text, to limit the size of the header, which must pass through proxies.
    package static let namesMax = 8

    /// The first `namesMax` patterns, and the number of further patterns.
    package var names: String {
        let names = self.tasks.prefix(Self.namesMax).map(\.text).joined(separator: ", ")
        let others = self.tasks.count - Self.namesMax
        return others > 0 ? "\(names) and \(others) more" : names
    }

    /// The remedy, as a sentence without its period.
    package var remedy: String {
        switch self.problem {
        case .notPermitted: "add them to topics.\(self.topic).tasks of the gateway's configuration"
        case .everythingPermitted: "list them in topics.\(self.topic).tasks of its configuration before production"
        }
    }

    /// The value of the `wakegate-warning` header: a fixed name, a semicolon, the problem, a semicolon, and the remedy.
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

/// The rate limit of pushes to one device: a maximum number per window. A window starts with the first push after the
/// previous window has ended.
///
/// The rate is checked before the launch policy sees a push. The current windows do not survive a restart.
package struct PushRate: Hashable, Sendable {
    /// The maximum number of pushes per window, at most 65,535; 0 means unlimited.
    package var pushesMax = 6000
    /// The length of a window, in seconds.
    package var seconds = 60

    package init() {}
}

extension DeviceRecord {
    /// Returns the refusal of a push now; nil if the push is within the limit.
    func rateRefusal(_ rate: PushRate, at now: Instant) -> Refusal? {
        guard rate.pushesMax > 0, !self.isRateWindowOver(rate, at: now), Int(self.rateWindowCount) >= rate.pushesMax
        else { return nil }
        let end = Int64(self.rateWindowStart) + Int64(rate.seconds)
        return .tooMany(until: Instant(milliseconds: end * 1000))
    }

    /// Counts a push.
    ///
    /// - Throws: `tooMany` if the window is full; the push is not counted then.
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

/// The history of launch policies in effect. Version numbers increase by one, across restarts too.
///
/// A version covers the default policy and the policies of all topics. The last `versionsMax` versions are remembered.
package struct PolicyVersions: Hashable, Sendable {
    /// The maximum number of remembered versions.
    package static let versionsMax = 32

    package struct Version: Hashable, Sendable {
        /// The version number, counted from 1.
        package let number: UInt32
        /// The start of the version, in policy time.
        package let since: Instant
        /// A hash of the parameters, to detect changes.
        let fingerprint: UInt64
    }

    /// The versions in ascending order; the last is in effect.
    private var versions: [Version] = []

    package init() {}

    /// The version in effect; nil before the first.
    package var current: Version? { self.versions.last }

    /// Returns the number of the version in effect at `moment`; nil if it is no longer remembered.
    package func number(at moment: Instant) -> UInt32? {
        self.versions.last { $0.since <= moment }?.number
    }

    /// Starts a version at `now` if the policies of `configuration` differ from the policies in effect.
    ///
    /// - Returns: true if they differ.
    package mutating func begin(_ configuration: EngineConfiguration, at now: Instant) -> Bool {
        let fingerprint = Self.fingerprint(configuration)
        guard fingerprint != self.current?.fingerprint else { return false }
        let number = (self.current?.number ?? 0) &+ 1
        self.versions.append(Version(number: number, since: now, fingerprint: fingerprint))
        if self.versions.count > Self.versionsMax { self.versions.removeFirst() }
        return true
    }

    /// Returns the 64-bit FNV-1a hash of all parameters, and of the topics whose parameters differ from the default
    /// policy.
    ///
    /// A parameter of a newer WakeGate version counts only if it is not the default, so that upgrades do not change
    /// fingerprints.
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
            // Names of topics do not contain a zero byte.
            for byte in topic.utf8 { mix(byte) }
            mix(0)
            mix(parameters)
        }
        return hash
    }
}

/// The stored form: number (4 bytes), start (8) and fingerprint (8) of each version, the oldest first.
extension PolicyVersions {
    private static let versionBytes = 20

    /// Decodes the output of `store`; nil if it is malformed or the versions are out of order.
    package init?(stored bytes: ByteView) {
        guard bytes.count % Self.versionBytes == 0, bytes.count / Self.versionBytes <= Self.versionsMax else {
            return nil
        }
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
    /// A hash that is the same in every process: 64 bits mixed from the names and values of the parameters that are not
    /// the default. A new parameter does not change the hash unless it is set.
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
