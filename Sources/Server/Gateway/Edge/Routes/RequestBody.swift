package import Wire

/// The small JSON bodies of the worker and admin API.
package enum RequestBody {
    /// The most bytes such a body may have.
    static let bytesMax = 4096

    /// The most bytes of a test push: a payload may be written with spaces and escapes.
    static let testPushBytesMax = 32_768

    /// Returns the members of a body, which must be a JSON object. No name may appear twice in an object of it: readers
    /// of JSON differ in which of the two they believe.
    ///
    /// - Parameter reason: the code of the error if it is no such object.
    /// - Throws: `APIError` with that reason.
    package static func object(_ body: ByteView, reason: String) throws(APIError) -> JSONValue {
        switch JSONGate.judge(body) {
        case .notJSON, .notAnObject:
            throw APIError(400, reason, "The body is not a JSON object (RFC 8259); send one, as {\"key\": \"value\"}.")
        case .wakes, .wrongContentAvailable, .doesNotWake: break
        }
        do throws(JSONFault) {
            return try JSONReader.read(body.string, refusingRepeatedNames: true)
        } catch {
            let subject = error.member ?? "The body"
            guard error.kind == .unreadable else {
                throw APIError(400, reason, "\(subject) cannot be read: \(error.what); send it once.")
            }
            throw APIError(400, reason, "\(subject) cannot be read: \(error.what); send a simpler value.")
        }
    }

    /// How much longer a worker wants a wake to last, in milliseconds from now; nil when it leaves that open.
    ///
    /// - Throws: `APIError` with reason `BadExtension`.
    static func `extension`(_ body: ByteView) throws(APIError) -> Int64? {
        guard !body.isEmpty else { return nil }
        let object = try self.object(body, reason: "BadExtension")
        if let other = object.members.map(\.name).first(where: { $0 != "seconds" }) {
            throw APIError(400, "BadExtension", "\(other) is not a member of an extension; it takes seconds alone.")
        }
        guard let seconds = object["seconds"] else { return nil }
        guard case .number(let number) = seconds, number.double > 0, number.double <= Self.extensionSecondsMax else {
            let message = "seconds is \(seconds.described); send a number more than 0, and at most a day's."
            throw APIError(400, "BadExtension", message)
        }
        return max(1, Int64(number.double * 1000))
    }

    private static let extensionSecondsMax = 86_400.0
}
