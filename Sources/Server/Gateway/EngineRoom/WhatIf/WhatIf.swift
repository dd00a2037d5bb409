import Policy
package import Wire

/// Policy parameters to try with recorded pushes: `{"policy": {"launchInterval": 600}}`.
package struct WhatIf: Sendable {
    /// The changes to the policy in effect, in the units of the configuration.
    let changes: [(parameter: PolicyParameter, value: Double)]

    /// Creates a value without changes to the active policy.
    init() { self.changes = [] }

    /// - Throws: `APIError` with reason `BadPolicy`, the parameter's name, the fault and the valid values.
    package init(_ body: JSONValue) throws(APIError) {
        if let other = body.members.first(where: { $0.name != "policy" }) {
            throw Self.fault("\(other.name) is not a member of a what-if; it takes policy alone.")
        }
        guard case .object(let members)? = body["policy"] else {
            throw Self.fault("policy is \(body["policy"]?.kind ?? "missing"); send an object of parameters.")
        }
        var changes: [(parameter: PolicyParameter, value: Double)] = []
        var parameters = Parameters()
        for member in members {
            guard let parameter = PolicyParameter(rawValue: member.name) else {
                let names = PolicyParameter.allCases.map(\.rawValue)
                let nearest = NearestMatch.find(member.name, in: names).map { "; did you mean \($0)?" } ?? "."
                let known = names.joined(separator: ", ")
                throw Self.fault("\(member.name) is not a parameter\(nearest) Parameters are \(known).")
            }
            guard case .number(let number) = member.value else {
                throw Self.fault(
                    "\(parameter.rawValue) is \(member.value.described); it takes \(parameter.requirement)."
                )
            }
            guard parameter.set(number.double, in: &parameters) else {
                throw Self.fault("\(parameter.rawValue) is \(number.text); it takes \(parameter.requirement).")
            }
            changes.removeAll { $0.parameter == parameter }
            changes.append((parameter, number.double))
        }
        self.changes = changes
    }

    private static func fault(_ message: String) -> APIError { APIError(400, "BadPolicy", message) }
}
