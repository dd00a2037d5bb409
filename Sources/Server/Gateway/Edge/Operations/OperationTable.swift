package import Wire

/// What a method and a path come to on a listener.
package enum OperationMatch {
    /// This one, with where in the path the parameters stand, which are not checked yet.
    case found(Operation, PathParameters)
    /// The path exists, for these methods.
    case methodNotAllowed(allow: String)
    case notFound
}

/// Finds the operation of a request.
package struct OperationTable: Sendable {
    /// The operations of one path, in the order of their methods.
    private struct Place {
        let path: PathPattern
        let operations: [Operation]
    }

    /// Every operation of the gateway.
    package static let gateway = OperationTable(Operation.all)

    /// By the number of slashes in the path; what is spelt out goes before what takes a parameter.
    private let places: [[Place]]
    /// How the path of each place begins, which few of those of one depth have in common.
    private let beginnings: [[PathPattern.Beginning]]

    package init(_ operations: [Operation]) {
        let byPath = Dictionary(grouping: operations, by: \.path)
        let order = HTTPMethod.allCases
        var places: [[Place]] = []
        for (path, operations) in byPath.sorted(by: { $0.key.text < $1.key.text }) {
            while places.count <= path.depth { places.append([]) }
            let sorted = order.flatMap { method in operations.filter { $0.method == method } }
            let place = Place(path: path, operations: sorted)
            if path.hasParameter { places[path.depth].append(place) } else { places[path.depth].insert(place, at: 0) }
        }
        self.places = places
        self.beginnings = places.map { $0.map(\.path.beginning) }
    }

    /// What a request comes to on a listener.
    ///
    /// - `path`: without its query.
    /// - `role`: the listener's; each serves its own operations.
    package func match(method: ByteView, path: ByteView, on role: ListenerRole) -> OperationMatch {
        var depth = 0
        for index in 0..<path.count where path[index] == UInt8(ascii: "/") { depth += 1 }
        guard depth < self.places.count else { return .notFound }
        let beginning = PathPattern.Beginning(path)
        for index in self.beginnings[depth].indices where self.beginnings[depth][index].agrees(with: beginning) {
            let place = self.places[depth][index]
            guard let parameters = place.path.match(path) else { continue }
            return Self.match(method, place, parameters, role)
        }
        return .notFound
    }

    private static func match(
        _ method: ByteView,
        _ place: Place,
        _ parameters: PathParameters,
        _ role: ListenerRole
    ) -> OperationMatch {
        let isHead = method == "HEAD"
        for operation in place.operations where operation.listeners.contains(role) {
            if operation.method == method || isHead && operation.takesHead {
                return .found(operation, parameters)
            }
        }
        let methods = place.operations.filter { $0.listeners.contains(role) }.flatMap { operation in
            operation.takesHead ? ["\(operation.method.name)", "HEAD"] : ["\(operation.method.name)"]
        }
        return methods.isEmpty ? .notFound : .methodNotAllowed(allow: methods.joined(separator: ", "))
    }
}
