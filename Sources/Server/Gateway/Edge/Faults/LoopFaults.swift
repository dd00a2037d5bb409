import Engine
import HTTPTransport
import Wire

/// What fault rules have done on one loop and have not finished with.
final class LoopFaults {
    enum Task {
        case push(FaultedPush)
        /// The connection's stream limit ends, unless it was changed since.
        case limitEnds(ConnectionID, change: UInt64)
        /// The window of the connection's streams ends, unless it was changed since.
        case windowEnds(ConnectionID, change: UInt64)
    }

    /// A stream limit that is not the usual one.
    private struct Limit {
        let change: UInt64
        let endsWithSuccess: Bool
    }

    let desk: FaultDesk
    var agenda = FaultAgenda<Task>()
    private var generation: UInt64
    private var limits: [ConnectionID: Limit] = [:]
    /// The changes by which connections have a stream window that is not the usual one.
    private var windows: [ConnectionID: UInt64] = [:]
    private var lastChange: UInt64 = 0
    /// Connections whose provider token has expired.
    /// The values of `authorization` that have made connections unusable; empty for a push that had none.
    private var unusable: [ConnectionID: [UInt8]] = [:]
    /// Unusable connections that have since shown another value.
    private var changedInVain: Set<ConnectionID> = []
    /// Connections of which nothing more is taken, because they were told so or are about to end; and the last stream
    /// of each that still is.
    private var abandoned: [ConnectionID: Int32] = [:]
    /// Pushes at the engine whose answers are to be lost.
    private var losing: [StreamID: LostReply] = [:]
    private var stuck: Set<StreamID> = []

    init(_ desk: FaultDesk) {
        self.desk = desk
        self.generation = desk.generation
    }

    /// Whether a push has to be shown to the rules, or to what they left behind.
    var isActive: Bool { self.desk.hasRules || !self.limits.isEmpty || !self.abandoned.isEmpty }

    /// Asks whether a provider's token has not been made to expire.
    ///
    /// - Parameter authorization: the value of the header field; nil when it is absent.
    /// - Throws: `expiredProviderToken`.
    func admit(_ authorization: ByteView?, on connection: ConnectionID) throws(APNSReason) {
        guard !self.unusable.isEmpty || self.desk.hasExpiredTokens else { return }
        if let shown = self.unusable[connection] {
            if let authorization, authorization.array != shown { self.changedInVain.insert(connection) }
            throw .expiredProviderToken
        }
        guard self.desk.hasExpiredTokens, let authorization, self.desk.isExpired(authorization) else { return }
        self.unusable[connection] = authorization.array
        throw .expiredProviderToken
    }

    /// Returns true if an unusable connection has since shown another token.
    func hasChangedInVain(_ connection: ConnectionID) -> Bool { self.changedInVain.contains(connection) }

    /// The rules were cleared since the last call: what they did to connections has ended.
    ///
    /// - Returns: connections whose stream limits, and those whose stream windows, are to be the usual again; nil when
    ///   nothing was cleared.
    func takeCleared() -> (limits: [ConnectionID], windows: [ConnectionID])? {
        guard self.desk.generation != self.generation else { return nil }
        self.generation = self.desk.generation
        self.unusable.removeAll()
        self.changedInVain.removeAll()
        defer { self.limits.removeAll() }
        return (Array(self.limits.keys), self.takeWindows())
    }

    func tokenExpired(_ authorization: [UInt8]?, on connection: ConnectionID) {
        self.unusable[connection] = authorization ?? []
        if let authorization { self.desk.expire(authorization) }
    }

    // MARK: Streams

    func isAbandoned(_ stream: StreamID) -> Bool {
        self.abandoned[stream.connection].map { stream.number > $0 } ?? false
    }

    /// Takes nothing more of a connection, not even what was put off.
    ///
    /// - Parameter last: the last stream whose push is still taken; 0 for none.
    func abandon(_ connection: ConnectionID, after last: Int32) {
        self.abandoned[connection] = last
        self.agenda.remove { task in
            guard case .push(let push) = task else { return false }
            return self.isAbandoned(push.stream)
        }
    }

    func leaveStuck(_ stream: StreamID) { self.stuck.insert(stream) }

    /// - Returns: the streams that would never be answered.
    func takeStuck() -> Set<StreamID> {
        defer { self.stuck.removeAll() }
        return self.stuck
    }

    func loseReply(_ stream: StreamID, _ reply: LostReply) { self.losing[stream] = reply }

    func takeLost(_ stream: StreamID) -> LostReply? { self.losing.removeValue(forKey: stream) }

    func streamClosed(_ stream: StreamID) { self.stuck.remove(stream) }

    func connectionClosed(_ connection: ConnectionID) {
        self.limits[connection] = nil
        self.windows[connection] = nil
        self.unusable[connection] = nil
        self.changedInVain.remove(connection)
        self.abandoned[connection] = nil
    }

    // MARK: Stream limits

    /// A connection has another stream limit.
    ///
    /// - Returns: the number of the change.
    func limitChanged(_ connection: ConnectionID, endsWithSuccess: Bool) -> UInt64 {
        self.lastChange += 1
        self.limits[connection] = Limit(change: self.lastChange, endsWithSuccess: endsWithSuccess)
        return self.lastChange
    }

    /// Whether the connection's stream limit ends with its next push that is accepted.
    func awaitsSuccess(_ connection: ConnectionID) -> Bool { self.limits[connection]?.endsWithSuccess == true }

    /// - Parameter change: the one whose time is over; nil for any that ends with success.
    /// - Returns: whether the limit is to be the usual again.
    func limitEnded(_ connection: ConnectionID, change: UInt64?) -> Bool {
        guard let limit = self.limits[connection], change.map({ $0 == limit.change }) ?? limit.endsWithSuccess else {
            return false
        }
        self.limits[connection] = nil
        return true
    }

    // MARK: Stream windows

    /// A connection has another stream window.
    ///
    /// - Returns: the number of the change.
    func windowChanged(_ connection: ConnectionID) -> UInt64 {
        self.lastChange += 1
        self.windows[connection] = self.lastChange
        return self.lastChange
    }

    /// - Parameter change: the one whose time is over.
    /// - Returns: whether the window is to be the usual again.
    func windowEnded(_ connection: ConnectionID, change: UInt64) -> Bool {
        guard self.windows[connection] == change else { return false }
        self.windows[connection] = nil
        return true
    }

    /// - Returns: the connections whose stream window is not the usual one, which it is to be again.
    func takeWindows() -> [ConnectionID] {
        defer { self.windows.removeAll() }
        return Array(self.windows.keys)
    }
}

/// A push that a fault rule has caught.
final class FaultedPush {
    let effect: FaultEffect
    let stream: StreamID
    let apnsID: APNsID
    /// What the engine would be given.
    let kept: KeptPush
    /// The value of `authorization`; nil when it is absent.
    let authorization: [UInt8]?

    init(_ effect: FaultEffect, _ push: Push, from address: StreamAddress, _ authorization: ByteView?) {
        self.effect = effect
        self.stream = StreamID(address)
        self.apnsID = push.apnsID
        self.kept = KeptPush(push, from: address)
        self.authorization = authorization?.array
    }
}
