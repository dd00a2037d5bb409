/// How a worker ends once it was asked to: by when its handlers, its results and everything else are over.
///
/// One bound holds from the first request, whoever is silent: the gateway, the network, or a handler. Pure: moments are
/// milliseconds on the caller's clock.
package struct StopStateMachine: Sendable {
    private enum State: Hashable, Sendable {
        /// Nobody has asked. Can move to: finishing, cancelled.
        case running
        /// Handlers may end by themselves until `cancelAt`. Can move to: cancelled, over.
        case finishing(cancelAt: Int64, endAt: Int64)
        /// Handlers were told to stop. Can move to: over.
        case cancelled(endAt: Int64)
        /// Nothing more is waited for. Terminal.
        case over
    }

    /// How long ending takes at most, from the first request: an execution window of 30 s, and the time for results.
    package static let limitByDefault: Int64 = 40_000
    /// How long results are tried to be delivered once no handler runs, at most; a quarter of a limit that is short.
    package static let resultsMax: Int64 = 10_000
    /// How long results are tried to be delivered after a second request, at most.
    package static let hurriedResultsMax: Int64 = 2000
    /// How long ending takes at most from a second request: commands that do not heed SIGTERM are killed after 2 s.
    package static let hurriedMax: Int64 = 5000

    private var state = State.running
    private let limit: Int64
    private var resultsMax: Int64
    /// Since when no handler runs, after the request.
    private var idleSince: Int64?

    package init(limit: Int64 = Self.limitByDefault) {
        self.limit = limit
        self.resultsMax = min(Self.resultsMax, limit / 4)
    }

    /// Whether handlers were told to stop, so that none is started.
    package var isCancelled: Bool {
        switch self.state {
        case .cancelled, .over: true
        case .running, .finishing: false
        }
    }

    /// When `momentReached` has something to say; nil for never.
    package var nextMoment: Int64? {
        let idleEnd = self.idleSince.map { $0 + self.resultsMax }
        return switch self.state {
        case .running, .over: nil
        case .finishing(let cancelAt, let endAt): min(idleEnd ?? cancelAt, endAt)
        case .cancelled(let endAt): min(idleEnd ?? endAt, endAt)
        }
    }
}

// MARK: - Events

extension StopStateMachine {
    /// Somebody asked for the first time, or the gateway lets the worker in no more.
    package mutating func stopRequested(now: Int64) {
        guard self.state == .running else { return }
        let endAt = now + self.limit
        self.state = .finishing(cancelAt: endAt - self.resultsMax, endAt: endAt)
    }

    /// Somebody asked again: the caller cancels the handlers.
    package mutating func cancelRequested(now: Int64) {
        switch self.state {
        case .running: self.state = .cancelled(endAt: now + min(self.limit, Self.hurriedMax))
        case .finishing(_, let endAt), .cancelled(let endAt):
            self.state = .cancelled(endAt: min(endAt, now + Self.hurriedMax))
        case .over: return
        }
        self.resultsMax = min(self.resultsMax, Self.hurriedResultsMax)
    }

    package enum Action: Hashable, Sendable {
        case nothing
        case cancelHandlers
        /// Nothing more is waited for: what was not delivered is given up.
        case end
    }

    /// What is left to do has changed, or may have.
    ///
    /// - `handlers`: how many run.
    /// - `wakes`: how many have a handler that runs, or a result that is not known to have arrived.
    package mutating func workChanged(handlers: Int, wakes: Int, now: Int64) -> Action {
        switch self.state {
        case .running: return .nothing
        case .over: return .end
        case .finishing, .cancelled: break
        }
        if handlers > 0 {
            self.idleSince = nil
        } else if self.idleSince == nil {
            self.idleSince = now
        }
        // Until it is in a hurry it lets the gateway end the stream, which then knows that no wake is lost.
        guard self.isCancelled, handlers == 0, wakes == 0 else { return .nothing }
        self.state = .over
        return .end
    }

    package mutating func momentReached(now: Int64) -> Action {
        guard let moment = self.nextMoment, moment <= now else { return .nothing }
        if case .finishing(_, let endAt) = self.state, self.idleSince == nil, now < endAt {
            self.state = .cancelled(endAt: endAt)
            return .cancelHandlers
        }
        self.state = .over
        return .end
    }
}
