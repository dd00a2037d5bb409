package import Engine
import Policy
package import Wire

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

    private var slots = 1
    private var name = ""
    private var devices: [DeviceToken] = []
    private var tasks: [IdentifierPattern] = []
    private var sessions: [IdentifierPattern] = []
    private var resources: [String] = []
    private var takesPushes = true
    private var reportsConditions = false

    /// - Throws: `APIError` that names the parameter, what is wrong and what it takes.
    package init(_ query: ByteView) throws(APIError) {
        try QueryParameter.forEach(of: query, repeatable: ["device", "task", "session", "resource"]) {
            parameter throws(APIError) in try self.take(parameter)
        }
        guard self.takesPushes || self.reportsConditions || !self.tasks.isEmpty || !self.sessions.isEmpty else {
            let message = "With push=0 alone nothing comes on the stream; name what it takes with task or session."
            throw APIError(400, "BadQuery", message)
        }
    }

    /// One slot for every device and pushes alone, unless the query says otherwise.
    package var request: SubscriptionRequest {
        SubscriptionRequest(
            slots: self.slots,
            takesPushes: self.takesPushes,
            tasks: self.tasks,
            sessions: self.sessions,
            resources: self.resources,
            reportsConditions: self.reportsConditions,
            devices: self.devices,
            label: self.name.percentDecoded ?? self.name
        )
    }

    private mutating func take(_ parameter: QueryParameter) throws(APIError) {
        let (name, value) = (parameter.name, parameter.value)
        switch name {
        case "slots": self.slots = try parameter.integer(1...SubscriptionRequest.slotsMax)
        case "name":
            guard value.utf8.count <= Self.nameBytesMax else {
                throw APIError(400, "BadQuery", "name is a label of at most \(Self.nameBytesMax) bytes.")
            }
            self.name = value
        case "device":
            guard let token = value.withByteView({ DeviceToken(hex: $0) }) else { throw APIError.badDeviceToken }
            try Self.append(token, to: &self.devices, name)
        case "task": try Self.append(try Self.pattern(parameter), to: &self.tasks, once: name)
        case "session": try Self.append(try Self.pattern(parameter), to: &self.sessions, once: name)
        case "resource":
            let resource = value.percentDecoded ?? value
            guard TaskRequestReader.isResource(resource) else {
                throw APIError(400, "BadQuery", "resource is \(TaskRequestReader.resourceRequirement).")
            }
            try Self.append(resource, to: &self.resources, name, countMax: SubscriptionRequest.resourcesMax)
        case "push": self.takesPushes = try parameter.flag()
        case "conditions": self.reportsConditions = try parameter.flag()
        default:
            let takes = "a subscription takes \(Self.parameters.joined(separator: ", "))"
            throw parameter.unknown(among: Self.parameters, takes)
        }
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
        _ pattern: IdentifierPattern,
        to patterns: inout [IdentifierPattern],
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

    private static func pattern(_ parameter: QueryParameter) throws(APIError) -> IdentifierPattern {
        let pattern = IdentifierPattern(parameter.value.percentDecoded ?? parameter.value)
        guard pattern.isWellFormed else {
            throw APIError(
                400,
                "BadQuery",
                "\(parameter.name) is 1 to 255 characters out of A-Z, a-z, 0-9, '.', '-' and '_', or those and '.*' "
                    + "for all names that begin so."
            )
        }
        return pattern
    }
}
