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

/// The path of an operation, as the document of the interface spells it: `/v1/devices/{token}/pushes`.
///
/// At most two segments are parameters, which take any bytes but a slash, or none.
package struct PathPattern: Hashable, Sendable, ExpressibleByStringLiteral {
    /// A part of a path.
    private enum Part: Hashable, Sendable {
        /// What the pattern has there, byte for byte, slashes too.
        case literal(Range<Int>)
        case parameter
    }

    package let text: String
    private let bytes: [UInt8]
    /// From the first to the last; what is spelt out and parameters take turns.
    private let parts: [Part]
    /// How many slashes a path has that it matches.
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

    /// Where the parameters stand in a path; nil when the path is another.
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
    /// The first bytes of a path, as far as a pattern spells them out and a word holds them.
    package struct Beginning: Hashable, Sendable, BitwiseCopyable {
        private let word: UInt64
        /// Which bits of the word are known.
        private let mask: UInt64

        /// All that a word holds of `path`; behind a shorter one are zeros.
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

        /// Whether a path that begins like `path` may be one of those that begin like this.
        package func agrees(with path: Beginning) -> Bool { path.word & self.mask == self.word }
    }

    /// How every path begins that it matches.
    package var beginning: Beginning {
        guard case .literal(let place)? = self.parts.first else { preconditionFailure("a path begins with a slash") }
        return self.bytes.withByteView { Beginning($0, count: place.count) }
    }
}

/// Where in a path its parameters stand: nowhere for those that its pattern does not have.
package struct PathParameters: Hashable, Sendable {
    package var first = 0..<0
    package var second = 0..<0

    package init() {}
}
