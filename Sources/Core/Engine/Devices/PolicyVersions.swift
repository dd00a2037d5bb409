package import Policy
package import Wire

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
    /// A parameter of background tasks counts where it is not the default: a policy that names none of them has the
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
            where !PolicyParameter.ofTasks.contains(parameter)
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
