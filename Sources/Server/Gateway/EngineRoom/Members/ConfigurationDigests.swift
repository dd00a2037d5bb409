package import Engine
import Policy
import Wire

/// The settings that must be equal on all gateways of a shared store, as a number for each configuration key. They are
/// the policies, the permitted tasks, the registration mode, and the limits that cause refusals.
///
/// Memory limits are not included, because machines may have different amounts of memory.
package enum ConfigurationDigests {
    /// The maximum number of topics with separate keys. The settings of further topics share one key.
    static let topicsMax = 100

    /// Returns the digests of a configuration by key. A topic has keys only for settings of its own.
    package static func digests(of configuration: EngineConfiguration) -> [String: UInt64] {
        var digests: [String: UInt64] = [:]
        for parameter in PolicyParameter.allCases {
            digests["policy.\(parameter.rawValue)"] = parameter.value(in: configuration.policy).bitPattern
        }
        digests["registration"] = configuration.openRegistration ? 1 : 0
        for (name, value) in Self.limits(configuration) { digests["limits.\(name)"] = UInt64(value) }
        let ofTopics = Self.topicPolicies(configuration) + Self.topicTasks(configuration)
        for (place, digest) in ofTopics.sorted(by: { $0.key < $1.key }).enumerated() {
            guard place >= self.topicsMax else {
                digests[digest.key] = digest.value
                continue
            }
            var rest = digests["topics"].map { Fingerprint(value: $0) } ?? Fingerprint()
            rest.mix(digest.key)
            rest.mix(digest.value)
            digests["topics"] = rest.value
        }
        return digests
    }

    /// Returns the keys whose digests differ, in alphabetical order.
    ///
    /// - Parameter gateways: the digests of each gateway. A missing key counts as a difference only for topics, because
    ///   a gateway of another version may know other keys.
    package static func differences(_ gateways: [[String: UInt64]]) -> [String] {
        guard gateways.count > 1 else { return [] }
        let keys = gateways.reduce(into: Set<String>()) { $0.formUnion($1.keys) }
        return keys.sorted().filter { key in
            let values = gateways.map { $0[key] }
            let known = Set(values.compactMap { $0 })
            return known.count > 1 || (key.hasPrefix("topics") && values.contains(nil))
        }
    }

    private static func limits(_ configuration: EngineConfiguration) -> [(name: String, value: Int)] {
        [
            ("devicesMax", configuration.devicesMax), ("devicesPerTopicMax", configuration.devicesPerTopicMax),
            ("topicsMax", configuration.topicsMax), ("streamsPerDeviceMax", configuration.streamsPerDeviceMax),
            ("taskRequestsMax", configuration.taskRequestsMax),
            ("pushesPerDeviceMax", configuration.pushRate.pushesMax),
            ("pushesPerDeviceSeconds", configuration.pushRate.seconds),
        ]
    }

    private static func topicPolicies(_ configuration: EngineConfiguration) -> [(key: String, value: UInt64)] {
        configuration.topicPolicies.compactMap { topic, parameters in
            guard parameters != configuration.policy else { return nil }
            var fingerprint = Fingerprint()
            // Older gateways do not know the newest parameters. They compute the same number, because these parameters
            // are included only if they differ from the default.
            for parameter in PolicyParameter.allCases
            where ![.expirationLead, .pressureStep].contains(parameter)
                || parameter.value(in: parameters) != parameter.value(in: Parameters())
            {
                fingerprint.mix(parameter.rawValue)
                fingerprint.mix(parameter.value(in: parameters).bitPattern)
            }
            return ("topics.\(topic).policy", fingerprint.value)
        }
    }

    private static func topicTasks(_ configuration: EngineConfiguration) -> [(key: String, value: UInt64)] {
        let permitted = configuration.permittedTasks
        return permitted.listedTopics.compactMap { topic in
            guard let patterns = permitted[topic] else { return nil }
            var fingerprint = Fingerprint()
            for pattern in patterns.map(\.text).sorted() { fingerprint.mix(pattern) }
            return ("topics.\(topic).tasks", fingerprint.value)
        }
    }

    /// A 64-bit hash that is the same in every process.
    private struct Fingerprint {
        var value: UInt64 = 0xE703_7ED1_A0B4_28DB

        mutating func mix(_ number: UInt64) {
            self.value = FoldedProduct.of(self.value ^ number, 0xA076_1D64_78BD_642F)
        }

        mutating func mix(_ text: String) {
            for byte in text.utf8 { self.mix(UInt64(byte)) }
            // A zero separates names, because no name contains one.
            self.mix(0)
        }
    }
}
