import Engine
import Policy
import Wire

/// Reads the request for a background task, field by field.
struct TaskRequestReader {
    /// The most resources that a request names.
    static let resourcesMax = SubscriptionRequest.resourcesMax
    static let resourceRequirement = "1 to 64 characters out of A-Z, a-z, 0-9, '.', '-' and '_'"

    /// Every field, with the kinds that have it.
    private static let fields: [(name: String, kinds: Set<TaskKind>)] = [
        ("identifier", Set(TaskKind.requestable)), ("kind", Set(TaskKind.requestable)),
        ("earliestBegin", Set(TaskKind.requestable)), ("requiresNetworkConnectivity", [.processing]),
        ("requiresExternalPower", [.processing]), ("title", [.continued]), ("subtitle", [.continued]),
        ("strategy", [.continued]), ("resources", [.continued]),
    ]

    private let object: JSONValue

    /// - Parameter object: a JSON object.
    /// - Throws: `APIError` with reason `BadTaskRequest` when it has fields that no request has.
    init(_ object: JSONValue) throws(APIError) {
        self.object = object
        let names = Self.fields.map(\.name)
        for member in object.members where !names.contains(member.name) {
            let nearest = NearestMatch.find(member.name, in: names).map { "; did you mean \($0)?" } ?? "."
            let fields = names.joined(separator: ", ")
            throw Self.fault("\(member.name) is not a field of a request\(nearest) Fields are \(fields).")
        }
    }

    /// - Throws: `APIError` with reason `BadTaskRequest`, which names the field, what is wrong and what it takes.
    func request() throws(APIError) -> TaskRequest {
        guard case .string(let identifier)? = self.object["identifier"], IdentifierPattern.isIdentifier(identifier.utf8)
        else { throw self.fault("identifier", "1 to 255 characters out of A-Z, a-z, 0-9, '.', '-' and '_'") }
        let kinds = TaskKind.requestable
        guard case .string(let name)? = self.object["kind"], let kind = TaskKind(rawValue: name), kinds.contains(kind)
        else { throw self.fault("kind", Self.oneOf(kinds.map(\.rawValue))) }
        for member in self.object.members {
            let owners = Self.fields.first { $0.name == member.name }?.kinds ?? []
            guard owners.contains(kind) else {
                let owner = owners.map(\.rawValue).sorted().joined(separator: " or ")
                throw Self.fault("\(member.name) is a field of \(owner) alone; leave it out of \(kind.rawValue).")
            }
        }
        return TaskRequest(
            identifier: identifier,
            kind: try self.submission(kind),
            earliestBegin: try self.moment("earliestBegin"),
            details: TaskDetails(
                title: try self.text("title"),
                subtitle: try self.text("subtitle"),
                resources: try self.resources()
            )
        )
    }

    private func submission(_ kind: TaskKind) throws(APIError) -> TaskSubmission.Kind {
        switch kind {
        case .appRefresh, .urlSession: return .appRefresh
        case .processing:
            var needs: TaskNeeds = []
            if try self.flag("requiresNetworkConnectivity") { needs.insert(.network) }
            if try self.flag("requiresExternalPower") { needs.insert(.externalPower) }
            return .processing(needs)
        case .continued:
            guard let value = self.object["strategy"] else { return .continued(.queue) }
            guard case .string(let name) = value, let strategy = TaskSubmission.Strategy(rawValue: name) else {
                throw self.fault("strategy", Self.oneOf(TaskSubmission.Strategy.allCases.map(\.rawValue)))
            }
            return .continued(strategy)
        }
    }

    private func flag(_ field: String) throws(APIError) -> Bool {
        switch self.object[field] {
        case nil: return false
        case .bool(let flag)?: return flag
        case .null?, .number?, .string?, .array?, .object?: throw self.fault(field, "true or false")
        }
    }

    private func moment(_ field: String) throws(APIError) -> Int64? {
        guard let value = self.object[field] else { return nil }
        guard case .number(let number) = value, let moment = Int64(exactly: number.double),
            (0...Self.momentMax).contains(moment)
        else { throw self.fault(field, "a whole number of milliseconds since 1970, before the year 10000") }
        return moment
    }

    /// The last moment of the year 9999.
    private static let momentMax: Int64 = 253_402_300_799_999

    private func text(_ field: String) throws(APIError) -> String? {
        try RequestBody.text(field, of: self.object, reason: "BadTaskRequest")
    }

    private func resources() throws(APIError) -> [String] {
        guard let value = self.object["resources"] else { return [] }
        let takes = "a list of at most \(Self.resourcesMax) names, each of \(Self.resourceRequirement)"
        guard case .array(let elements) = value, elements.count <= Self.resourcesMax else {
            throw self.fault("resources", takes)
        }
        var resources: [String] = []
        for element in elements {
            guard case .string(let name) = element, Self.isResource(name) else { throw self.fault("resources", takes) }
            if !resources.contains(name) { resources.append(name) }
        }
        return resources
    }

    static func isResource(_ name: String) -> Bool {
        name.utf8.count <= 64 && IdentifierPattern.isIdentifier(name.utf8)
    }

    private static func oneOf(_ words: [String]) -> String {
        "one of \(words.map { "\"\($0)\"" }.joined(separator: ", "))"
    }

    private func fault(_ field: String, _ takes: String) -> APIError {
        Self.fault("\(field) is \(self.object[field]?.described ?? "missing"); it takes \(takes).")
    }

    private static func fault(_ message: String) -> APIError { APIError(400, "BadTaskRequest", message) }
}
