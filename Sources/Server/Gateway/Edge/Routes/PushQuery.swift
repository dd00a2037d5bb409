package import Wire

/// The query of a question about one push: nothing, or `device=<token>`.
package struct PushQuery {
    /// The device whose push of this name is meant; nil for the one that had it last.
    package let device: DeviceToken?

    /// - Throws: `APIError` that says what the query takes.
    package init(_ query: ByteView) throws(APIError) {
        guard !query.isEmpty else {
            self.device = nil
            return
        }
        guard query.starts(with: "device=") else {
            throw APIError(400, "BadQuery", "A push takes the parameter device=<token> alone, once.")
        }
        guard let device = DeviceToken(hex: query.dropFirst("device=".utf8.count)) else { throw .badDeviceToken }
        self.device = device
    }
}
