package import HTTPTransport
package import Wire

/// What a request shows in the field authorization.
package enum AuthorizationField {
    case absent
    /// What stands behind `bearer`.
    case bearer(ByteView)
    /// Something else, or the field came more than once.
    case other

    package init(_ request: Request) {
        var found: ByteView?
        for index in 0..<request.headerCount {
            let field = request.header(at: index)
            guard field.name == "authorization" else { continue }
            guard found == nil else {
                self = .other
                return
            }
            found = field.value
        }
        self = found.map { AuthorizationField(value: $0) } ?? .absent
    }

    /// The field with this value.
    package init(value: ByteView) {
        guard let space = value.firstIndex(of: UInt8(ascii: " ")), value[0..<space].equalsIgnoringCase("bearer") else {
            self = .other
            return
        }
        self = .bearer(value.dropFirst(space + 1))
    }
}
