package import Answers
package import Bytes
import Foundation
import LaunchPolicy
import Text
package import WakeDispatch

/// The query of a subscription: `slots=16&name=<label>&push=0&conditions=1` and, each several times if need be,
/// `device=<token>`, `task=<pattern>`, `session=<pattern>`, `resource=<name>`.
package struct SubscriptionQuery {
    /// The most devices, tasks or sessions a stream may name.
    package static let namesMax = 64
    /// The most bytes of a stream's label.
    static let nameBytesMax = 128

    private static let parameters = [
        "slots", "name", "device", "task", "session", "resource", "push", "conditions",
    ]

    private var slots: Int?
    private var name: String?
    private var devices: [DeviceToken] = []
    private var tasks: [NamePattern] = []
    private var sessions: [NamePattern] = []
    private var resources: [String] = []
    private var takesPushes: Bool?
    private var reportsConditions: Bool?

    /// - Throws: `APIError` that names the parameter, what is wrong and what it takes.
    package init(_ query: ByteView) throws(APIError) {
        for part in query.string.split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            try self.take(pair[0], pair.count == 2 ? pair[1] : "")
        }
        guard
            self.takesPushes != false || self.reportsConditions == true || !self.tasks.isEmpty
                || !self.sessions.isEmpty
        else {
            let message = "With push=0 alone nothing comes on the stream; name what it takes with task or session."
            throw APIError(400, "BadQuery", message)
        }
    }

    /// One slot for every device and pushes alone, unless the query says otherwise.
    package var request: SubscriptionRequest {
        SubscriptionRequest(
            slots: self.slots ?? 1,
            kinds: self.takesPushes == false ? [] : .push,
            tasks: self.tasks,
            sessions: self.sessions,
            resources: self.resources,
            reportsConditions: self.reportsConditions ?? false,
            devices: self.devices,
            label: self.name.map { $0.removingPercentEncoding ?? $0 } ?? ""
        )
    }

    private mutating func take(_ parameter: String, _ value: String) throws(APIError) {
        switch parameter {
        case "slots": self.slots = try Self.once(self.slots, parameter, try Self.slots(value))
        case "name":
            guard value.utf8.count <= Self.nameBytesMax else {
                throw APIError(400, "BadQuery", "name is a label of at most \(Self.nameBytesMax) bytes.")
            }
            self.name = try Self.once(self.name, parameter, value)
        case "device":
            guard let token = value.withByteView({ DeviceToken(hex: $0) }) else { throw APIError.badDeviceToken }
            try Self.append(token, to: &self.devices, parameter)
        case "task": try Self.append(try Self.pattern(parameter, value), to: &self.tasks, once: parameter)
        case "session": try Self.append(try Self.pattern(parameter, value), to: &self.sessions, once: parameter)
        case "resource":
            let resource = value.removingPercentEncoding ?? value
            guard TaskRequestReader.isResource(resource) else {
                throw APIError(400, "BadQuery", "resource is \(TaskRequestReader.resourceRequirement).")
            }
            try Self.append(resource, to: &self.resources, parameter, countMax: SubscriptionRequest.resourcesMax)
        case "push": self.takesPushes = try Self.once(self.takesPushes, parameter, try Self.flag(parameter, value))
        case "conditions":
            let flag = try Self.flag(parameter, value)
            self.reportsConditions = try Self.once(self.reportsConditions, parameter, flag)
        default:
            let nearest = NearestMatch.find(parameter, in: Self.parameters).map { " (\($0)?)" } ?? ""
            throw APIError(
                400,
                "BadQuery",
                "\(parameter) is not a parameter\(nearest); a subscription takes "
                    + "\(Self.parameters.joined(separator: ", "))."
            )
        }
    }

    private static func once<Value>(_ before: Value?, _ parameter: String, _ value: Value) throws(APIError) -> Value {
        guard before == nil else { throw APIError(400, "BadQuery", "\(parameter) may come only once.") }
        return value
    }

    private static func append<Value>(
        _ value: Value,
        to values: inout [Value],
        _ parameter: String,
        countMax: Int = namesMax
    ) throws(APIError) {
        guard values.count < countMax else {
            throw APIError(400, "BadQuery", "\(parameter) may come at most \(countMax) times.")
        }
        values.append(value)
    }

    private static func append(
        _ pattern: NamePattern,
        to patterns: inout [NamePattern],
        once parameter: String
    ) throws(APIError) {
        guard !patterns.contains(pattern) else {
            throw APIError(
                400,
                "DuplicateTask",
                "\(parameter)=\(pattern.text) comes twice; a stream handles each name once."
            )
        }
        try self.append(pattern, to: &patterns, parameter)
    }

    private static func pattern(_ parameter: String, _ value: String) throws(APIError) -> NamePattern {
        let text = value.removingPercentEncoding ?? value
        guard IdentifierPattern(text).isWellFormed else {
            throw APIError(
                400,
                "BadQuery",
                "\(parameter) is 1 to 255 characters out of A-Z, a-z, 0-9, '.', '-' and '_', or those and '.*' for all "
                    + "names that begin so."
            )
        }
        return NamePattern(text)
    }

    private static func flag(_ parameter: String, _ value: String) throws(APIError) -> Bool {
        switch value {
        case "0": return false
        case "1": return true
        default: throw APIError(400, "BadQuery", "\(parameter) is 0 or 1, not \"\(value)\".")
        }
    }

    private static func slots(_ text: String) throws(APIError) -> Int {
        guard let slots = text.withByteView({ $0.decimal }), slots >= 1, slots <= UInt64(SubscriptionRequest.slotsMax)
        else {
            throw APIError(
                400,
                "BadQuery",
                "slots is a whole number from 1 to \(SubscriptionRequest.slotsMax), not \"\(text)\"."
            )
        }
        return Int(slots)
    }
}
