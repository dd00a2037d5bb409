package import HTTPClient

/// When a worker subscribes again because its wakes cannot begin: a gateway gives a stream no more wakes after three in
/// a row that were given back.
///
/// Pure: moments are milliseconds on the caller's clock, and randomness comes in.
package struct ReleaseStateMachine: Sendable {
    /// The number of wakes in a row after which a gateway takes a stream for stalled.
    package static let releasesMax = 3

    private var releases = 0
    private var backoff: Backoff
    /// When to subscribe again; nil for never.
    package private(set) var renewAt: Int64?

    /// A machine that has given nothing back.
    package init(backoff: Backoff = Backoff(firstMilliseconds: 2000, lastMilliseconds: 60_000)) {
        self.backoff = backoff
    }

    /// The gateway took a wake back.
    package mutating func released(now: Int64, using generator: inout some RandomNumberGenerator) {
        self.releases += 1
        guard self.releases >= Self.releasesMax, self.renewAt == nil else { return }
        self.renewAt = now + Int64(self.backoff.failed(using: &generator))
    }

    /// The gateway has a result: wakes can begin, and its stream is not stalled.
    package mutating func answered() {
        self.streamEnded()
        self.backoff.succeeded()
    }

    /// The stream has ended; the next one has given nothing back.
    package mutating func streamEnded() {
        self.releases = 0
        self.renewAt = nil
    }
}
