import FoundationEssentials
import Wire

/// A value for one key, from the configuration file or from `--set`.
struct ConfigurationAssignment: Sendable {
    /// The parts of the key's name; a topic is one part, dots and all.
    var path: [String]
    var value: JSONValue
    /// The value as it was written, when it comes from the command line.
    var written: String?
    /// Why a value that begins as a list or an object cannot be read; nil where it can.
    var fault: JSON5Fault?

    var name: String { self.path.joined(separator: ".") }

    init(path: [String], value: JSONValue, written: String? = nil) {
        self.path = path
        self.value = value
        self.written = written
    }

    /// Reads `KEY=VALUE`. VALUE is JSON5; what is not is taken as a string.
    ///
    /// - Returns: nil without a key or without `=`.
    init?(setting: String) {
        guard let equals = setting.firstIndex(of: "="), equals != setting.startIndex else { return nil }
        let written = String(setting[setting.index(after: equals)...])
        do throws(JSON5Fault) {
            let value = try JSONValue.json5(Data(written.utf8))
            self.init(path: Self.path(of: setting[..<equals], value: value), value: value, written: written)
        } catch {
            let value = JSONValue.string(written)
            self.init(path: Self.path(of: setting[..<equals], value: value), value: value, written: written)
            // An address of IPv6 begins with a bracket, too.
            if written.hasPrefix("{") { self.fault = error }
        }
    }

    /// The sections of a topic.
    static let topicSections = ["policy", "webhook"]

    /// Splits a key at its dots. Topics contain dots themselves: a topic is what stands between `topics.` and
    /// the last `.policy` or `.webhook`, or before a final `.tasks` that is not the webhook's.
    private static func path(of key: Substring, value: JSONValue) -> [String] {
        let prefix = "topics."
        guard key.hasPrefix(prefix), key.utf8.count > prefix.utf8.count else {
            return key.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        }
        let rest = key.dropFirst(prefix.count)
        // A topic may be called so itself: what it takes is an object.
        let tasks = ".\(PermittedTasksKey.name)"
        if rest.hasSuffix(tasks), !rest.hasSuffix(".webhook\(tasks)") {
            guard case .object = value else {
                return ["topics", String(rest.dropLast(tasks.utf8.count)), PermittedTasksKey.name]
            }
        }
        // A key of a section never takes an object, so that an object is the section's own.
        for section in Self.topicSections where rest.hasSuffix(".\(section)") {
            guard case .object = value else { break }
            return ["topics", String(rest.dropLast(section.utf8.count + 1)), section]
        }
        let found = Self.topicSections.compactMap { section in
            rest.ranges(of: ".\(section).").last.map { (section, $0) }
        }
        if let (section, range) = found.max(by: { $0.1.lowerBound < $1.1.lowerBound }) {
            return ["topics", String(rest[..<range.lowerBound]), section, String(rest[range.upperBound...])]
        }
        return ["topics", String(rest)]
    }
}
