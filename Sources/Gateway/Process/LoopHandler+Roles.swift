import HTTPTransport

extension LoopHandler {
    /// What the caller of a route showed; nil when nobody is asked, and everything may be reached.
    ///
    /// What a route names in its path is looked at here, and refused whether it exists or not; what only the engine
    /// knows, such as a device's topic, is looked at there.
    ///
    /// - Throws: `APIError` when the caller shows no good token, or one that is not for this.
    func caller(of request: Request, by route: Route, _ role: ListenerRole) throws(APIError) -> ShownToken? {
        guard let shown = try self.shown(request, role) else { return nil }
        switch route {
        case .subscribe(let topic), .register(let topic), .topicStatistics(let topic):
            guard shown.token.scope.contains(topic) else { throw .foreignTopic }
        case .statistics, .backup, .push:
            // The history knows pushes without their topics.
            guard shown.token.scope == .all else { throw .everyTopicOnly }
        case .report, .extend, .drainStream, .unregister, .conditions, .topics, .explain, .devicePushes,
            .simulateLaunch, .simulateExpiration,
            .alive, .ready, .version:
            break
        }
        return shown
    }

    /// Ends the streams whose tokens were revoked or have expired since they were opened.
    func endStreamsWithoutProof() {
        guard !self.streams.isEmpty else { return }
        self.tokens.refreshIfPossible()
        for (stream, state) in self.streams where !self.tokens.admits(state.caller) {
            self.streamClosed(stream)
            self.loop.finish(stream)
        }
    }

    private func shown(_ request: Request, _ role: ListenerRole) throws(APIError) -> ShownToken? {
        switch role {
        case .edge, .plain: try self.tokens.worker(request)
        case .admin: self.context.areLocal[request.listener] ? nil : try self.tokens.operatorAfar(request)
        }
    }
}
