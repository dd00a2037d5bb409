package import Wire

/// The result of looking up a method and a path on a listener.
package enum OperationMatch {
    /// The operation, and the ranges of the path's parameters. Parameter values are not validated yet.
    case found(Operation, PathParameters)
    /// The path exists, but only for these methods.
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

    /// The paths, indexed by their number of slashes. Paths without parameters come before those with parameters.
    private let places: [[Place]]
    /// The beginning of each path. Comparing it first is fast, because few paths with equal depth share a beginning.
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

    /// Returns the operation of a request on a listener.
    ///
    /// - `path`: the path without its query.
    /// - `role`: the role of the listener; each role has its own operations.
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

/// The path of an operation, in the notation of OpenAPI: `/v1/devices/{token}/pushes`.
///
/// At most two segments are parameters. A parameter matches any bytes except a slash, also the empty string.
package struct PathPattern: Hashable, Sendable, ExpressibleByStringLiteral {
    /// A part of a path.
    private enum Part: Hashable, Sendable {
        /// The range of the pattern's bytes, including slashes, that must match literally.
        case literal(Range<Int>)
        case parameter
    }

    package let text: String
    private let bytes: [UInt8]
    /// The parts in order, alternating between literals and parameters.
    private let parts: [Part]
    /// The number of slashes in a matching path.
    package let depth: Int

    package init(stringLiteral text: String) {
        precondition(text.hasPrefix("/"), "a path begins with a slash")
        self.text = text
        let bytes = Array(text.utf8)
        var parts: [Part] = []
        var start = 0
        while let brace = bytes[start...].firstIndex(of: UInt8(ascii: "{")) {
            parts += [.literal(start..<brace), .parameter]
            start = bytes[brace...].firstIndex(of: UInt8(ascii: "/")) ?? bytes.count
        }
        if start < bytes.count { parts.append(.literal(start..<bytes.count)) }
        self.bytes = bytes
        self.parts = parts
        self.depth = bytes.count { $0 == UInt8(ascii: "/") }
        precondition(parts.count { $0 == .parameter } <= 2, "a path has at most two parameters")
    }

    package var hasParameter: Bool { self.parts.contains(.parameter) }

    /// Returns the ranges of the parameters in a path; nil if the path does not match.
    package func match(_ path: ByteView) -> PathParameters? {
        self.bytes.withByteView { self.match(path, $0) }
    }

    private func match(_ path: ByteView, _ pattern: ByteView) -> PathParameters? {
        var parameters = PathParameters()
        var isFirst = true
        var start = 0
        for part in self.parts {
            switch part {
            case .literal(let place):
                guard path.count - start >= place.count,
                    path.slice(start, count: place.count) == pattern.slice(place.lowerBound, count: place.count)
                else { return nil }
                start += place.count
            case .parameter:
                let rest = path.slice(start, count: path.count - start)
                let place = start..<start + (rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.count)
                if isFirst { parameters.first = place } else { parameters.second = place }
                isFirst = false
                start = place.upperBound
            }
        }
        return start == path.count ? parameters : nil
    }
}

extension PathPattern {
    /// The first bytes of a path, up to the first parameter and at most eight.
    package struct Beginning: Hashable, Sendable, BitwiseCopyable {
        private let word: UInt64
        /// The bits of `word` that contain bytes of the beginning.
        private let mask: UInt64

        /// Uses the first eight bytes of `path`, padded with zeros.
        package init(_ path: ByteView) {
            self.init(path, count: 8)
        }

        fileprivate init(_ bytes: ByteView, count: Int) {
            var word: UInt64 = 0
            if bytes.count >= 8 {
                word = bytes.word(at: 0)
            } else {
                for index in (0..<bytes.count).reversed() { word = word << 8 | UInt64(bytes[index]) }
            }
            let mask = count >= 8 ? UInt64.max : 1 << UInt64(count * 8) &- 1
            self.word = word & mask
            self.mask = mask
        }

        /// Returns true if a path that begins like `path` may match a pattern with this beginning.
        package func agrees(with path: Beginning) -> Bool { path.word & self.mask == self.word }
    }

    /// The beginning of every matching path.
    package var beginning: Beginning {
        guard case .literal(let place)? = self.parts.first else { preconditionFailure("a path begins with a slash") }
        return self.bytes.withByteView { Beginning($0, count: place.count) }
    }
}

/// The ranges of a path's parameters; empty for parameters that the pattern does not have.
package struct PathParameters: Hashable, Sendable {
    package var first = 0..<0
    package var second = 0..<0
}
