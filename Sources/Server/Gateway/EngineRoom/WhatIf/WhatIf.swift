import Policy
package import Wire

/// A policy parameter and the value to try, in the unit of the configuration.
typealias PolicyChange = (parameter: PolicyParameter, value: Double)

/// The policy parameters to try in a replay of recorded pushes and tasks, written as
/// `{"policy": {"launchInterval": 600}}` or as `launchInterval=600`.
package struct WhatIf: Sendable {
    /// The changes to the active policy.
    private(set) var changes: [PolicyChange] = []
    private var parameters = Parameters()

    /// Parses the body of a request.
    ///
    /// - Throws: `APIError` with the reason `BadPolicy`, the parameter's name, the fault and the valid values.
    package init(_ body: JSONValue) throws(APIError) {
        if let other = body.members.first(where: { $0.name != "policy" }) {
            throw Self.fault("\(other.name) is not a member of a what-if; it takes policy alone.")
        }
        guard case .object(let members)? = body["policy"] else {
            throw Self.fault("policy is \(body["policy"]?.kind ?? "missing"); send an object of parameters.")
        }
        for member in members {
            if case .number(let number) = member.value {
                try self.set(member.name, number.double, number.text)
            } else {
                try self.set(member.name, nil, member.value.described)
            }
        }
    }

    /// Creates a value that changes no parameter.
    init() {}

    /// Adds a change, which replaces an earlier change of the same parameter.
    ///
    /// - `value`: the value to try; nil if the received value is not a number.
    /// - `text`: the received value, for the error.
    /// - Throws: `APIError` if the parameter does not exist, or does not allow `value`.
    mutating func set(_ name: String, _ value: Double?, _ text: String) throws(APIError) {
        guard let parameter = PolicyParameter(rawValue: name) else {
            let names = PolicyParameter.allCases.map(\.rawValue)
            let nearest = NearestMatch.find(name, in: names).map { "; did you mean \($0)?" } ?? "."
            throw Self.fault("\(name) is not a parameter\(nearest) Parameters are \(names.joined(separator: ", ")).")
        }
        guard let value, parameter.set(value, in: &self.parameters) else {
            throw Self.fault("\(name) is \(text); it takes \(parameter.requirement).")
        }
        self.changes.removeAll { $0.parameter == parameter }
        self.changes.append((parameter, value))
    }

    private static func fault(_ message: String) -> APIError { APIError(400, "BadPolicy", message) }
}
