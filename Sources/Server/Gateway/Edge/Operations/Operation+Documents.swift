import CEmbeddedFiles
import Wire

extension Operation {
    /// The operations that serve the documents in the executable: the dashboard's files and the OpenAPI document.
    package static let documents: [Operation] = [
        Operation("dashboard", .get, "/", by: .unauthenticated, reaching: .nothing, afterFailedStore: .answered) {
            _ throws(APIError) in
            try Operation.page("index.html")
        },
        Operation(
            "dashboardFile",
            .get,
            "/dashboard/{file}",
            by: .unauthenticated,
            reaching: .nothing,
            afterFailedStore: .answered
        ) { call throws(APIError) in
            try Operation.page(call.parameter.string)
        },
        ofOperators("openAPI", .get, "/openapi.json", reaching: .nothing) { _ in
            .answered(OperationAnswer(unsafe EmbeddedFile(wakegate_gateway_openapi).bytes))
        },
    ]

    /// The content security policy of the dashboard. The dashboard may load and request only files and data from this
    /// listener.
    private static let contentPolicy: StaticString =
        """
        default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
        base-uri 'none'; form-action 'none'; frame-ancestors 'none'
        """

    /// Returns a file of the dashboard.
    private static func page(_ name: String) throws(APIError) -> OperationOutcome {
        guard let file = EmbeddedFile.dashboard[name] else { throw .badPath }
        let fields: [(name: StaticString, value: StaticString)] = [
            ("content-security-policy", Self.contentPolicy),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            // After an update, the gateway may serve another file at the same path.
            ("cache-control", "no-cache"),
        ]
        return .answered(OperationAnswer(type: file.type, fields: fields, file.bytes))
    }
}

/// A file embedded in the executable.
struct EmbeddedFile: Sendable {
    let name: String
    let bytes: [UInt8]

    @unsafe init(_ file: wakegate_embedded_file) {
        self.name = unsafe String(cString: file.name)
        self.bytes = unsafe Array(UnsafeBufferPointer(start: file.bytes, count: file.count))
    }

    /// The files of the dashboard by name.
    static let dashboard: [String: EmbeddedFile] = {
        let files = unsafe UnsafeBufferPointer(start: wakegate_dashboard_files, count: wakegate_dashboard_file_count)
        return unsafe Dictionary(
            uniqueKeysWithValues: files.map { file in
                let file = unsafe EmbeddedFile(file)
                return (file.name, file)
            }
        )
    }()

    /// The media type, as the value of `content-type`.
    var type: StaticString {
        if self.name.hasSuffix(".html") { return "text/html; charset=utf-8" }
        if self.name.hasSuffix(".css") { return "text/css; charset=utf-8" }
        return self.name.hasSuffix(".svg") ? "image/svg+xml" : "text/javascript; charset=utf-8"
    }
}
