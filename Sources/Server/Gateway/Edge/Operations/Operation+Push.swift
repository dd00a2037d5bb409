package import Wire

extension Operation {
    /// The provider API.
    package static let pushes = [push]

    /// The loops take pushes by a way of their own, whose checks have their own order and whose answers have their own
    /// words. Apple's documents describe it, not `openapi.json`.
    package static let push = Operation(
        "push",
        .post,
        "/3/device/{token}",
        on: .edge,
        by: .provider,
        reaching: .topicOfSubject,
        bodyLimit: .payload,
        answers: [200, 400, 403, 404, 405, 410, 413, 429, 500, 503],
        afterFailedStore: .refused,
        action: nil
    )

    /// Whether a request is one of the provider API, for which nobody looks into the table: it has an answer of its own
    /// for every path that comes to the edge, but for those of the worker API.
    package static func isOfProviders(path: ByteView, on role: ListenerRole) -> Bool {
        role != .admin && !path.starts(with: "/v1/")
    }
}
