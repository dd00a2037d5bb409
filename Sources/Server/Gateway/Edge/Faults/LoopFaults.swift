import Engine
package import HTTPTransport
import Wire

/// The active effects of fault rules on one loop.
package final class LoopFaults {
    /// A setting of a connection that rules can change.
    package enum Setting {
        case streamLimit, streamWindow
    }

    package enum Task {
        case push(FaultedPush)
        /// The end of a changed setting. It has no effect if the setting has changed since.
        case ends(Setting, ConnectionID, change: UInt64)
    }

    /// A setting other than the default.
    private struct Change {
        let number: UInt64
        let endsWithSuccess: Bool
    }

    /// The maximum number of delayed tasks. With pushes of the maximum size, they use 50 MB.
    package static let delayedMax = 10_000

    let service: FaultService
    /// The delayed tasks. Their due times are milliseconds of the loop's clock.
    var delayed = MomentQueue<Task>()
    private var generation: UInt64
    private var changes: [Setting: [ConnectionID: Change]] = [:]
    private var lastChange: UInt64 = 0
    /// The connections with an expired provider token, each with the `authorization` value that expired. The value is
    /// empty for a push without the field.
    private var unusable: [ConnectionID: [UInt8]] = [:]
    /// The connections of `unusable` that have since shown another value.
    private var changedInVain: Set<ConnectionID> = []
    /// The connections that accept no further streams, each with the last accepted stream. They were sent a GOAWAY or
    /// are about to close.
    private var abandoned: [ConnectionID: Int32] = [:]
    /// The pushes in the engine whose answers will be replaced or dropped.
    private var losing: [StreamID: LostReply] = [:]
    private var stuck: Set<StreamID> = []

    package init(_ service: FaultService) {
        self.service = service
        self.generation = service.generation
    }

    /// Delays a task until `dueAt`.
    ///
    /// - Returns: false if too many tasks are delayed.
    package func delay(_ task: Task, dueAt: Int64) -> Bool {
        guard self.delayed.count < Self.delayedMax else { return false }
        self.delayed.insert(task, at: dueAt)
        return true
    }

    /// True if fault rules, or their remaining effects, may affect pushes.
    var isActive: Bool {
        self.service.hasRules || self.changes[.streamLimit]?.isEmpty == false || !self.abandoned.isEmpty
    }

    /// Checks that no rule has made the provider's token expire.
    ///
    /// - `authorization`: the value of the header field; nil if it is absent.
    /// - Throws: `expiredProviderToken`.
    func admit(_ authorization: ByteView?, on connection: ConnectionID) throws(APNSReason) {
        guard !self.unusable.isEmpty || self.service.hasExpiredTokens else { return }
        if let shown = self.unusable[connection] {
            if let authorization, authorization.array != shown { self.changedInVain.insert(connection) }
            throw .expiredProviderToken
        }
        guard self.service.hasExpiredTokens, let authorization, self.service.isExpired(authorization) else { return }
        self.unusable[connection] = authorization.array
        throw .expiredProviderToken
    }

    /// Returns true if a rule made the connection's token expire and the connection has since shown another token.
    func hasChangedInVain(_ connection: ConnectionID) -> Bool { self.changedInVain.contains(connection) }

    /// Ends the effects of rules on provider tokens if the rules were cleared after the last call.
    ///
    /// - Returns: true if rules were cleared. The caller must then reset the changed settings of all connections.
    func takeCleared() -> Bool {
        guard self.service.generation != self.generation else { return false }
        self.generation = self.service.generation
        self.unusable.removeAll()
        self.changedInVain.removeAll()
        return true
    }

    func tokenExpired(_ authorization: [UInt8]?, on connection: ConnectionID) {
        self.unusable[connection] = authorization ?? []
        if let authorization { self.service.expire(authorization) }
    }

    // MARK: Streams

    func isAbandoned(_ stream: StreamID) -> Bool {
        self.abandoned[stream.connection].map { stream.number > $0 } ?? false
    }

    /// Stops accepting streams after `last` on a connection. Also removes the delayed pushes of these streams.
    ///
    /// - `last`: the last stream whose push is accepted; 0 for none.
    func abandon(_ connection: ConnectionID, after last: Int32) {
        self.abandoned[connection] = last
        self.delayed.removeAll { task in
            guard case .push(let push) = task.value else { return false }
            return self.isAbandoned(push.stream)
        }
    }

    func leaveStuck(_ stream: StreamID) { self.stuck.insert(stream) }

    /// Removes and returns the streams that a rule left without an answer.
    func takeStuck() -> Set<StreamID> {
        defer { self.stuck.removeAll() }
        return self.stuck
    }

    func loseReply(_ stream: StreamID, _ reply: LostReply) { self.losing[stream] = reply }

    func takeLost(_ stream: StreamID) -> LostReply? { self.losing.removeValue(forKey: stream) }

    func streamClosed(_ stream: StreamID) { self.stuck.remove(stream) }

    func connectionClosed(_ connection: ConnectionID) {
        for setting in self.changes.keys { self.changes[setting]?[connection] = nil }
        self.unusable[connection] = nil
        self.changedInVain.remove(connection)
        self.abandoned[connection] = nil
    }

    // MARK: Settings

    /// Records a change of a connection's setting.
    ///
    /// - `endsWithSuccess`: true if the change ends with the connection's next accepted push.
    /// - Returns: the number of the change.
    func changed(_ setting: Setting, of connection: ConnectionID, endsWithSuccess: Bool = false) -> UInt64 {
        self.lastChange += 1
        let change = Change(number: self.lastChange, endsWithSuccess: endsWithSuccess)
        self.changes[setting, default: [:]][connection] = change
        return self.lastChange
    }

    /// Returns true if the connection's stream limit ends with its next accepted push.
    func awaitsSuccess(_ connection: ConnectionID) -> Bool {
        self.changes[.streamLimit]?[connection]?.endsWithSuccess == true
    }

    /// - `number`: the change that has expired; nil for a change that ends with an accepted push.
    /// - Returns: true if the setting must be reset to the default.
    func ended(_ setting: Setting, of connection: ConnectionID, change number: UInt64?) -> Bool {
        guard let change = self.changes[setting]?[connection],
            number.map({ $0 == change.number }) ?? change.endsWithSuccess
        else { return false }
        self.changes[setting]?[connection] = nil
        return true
    }

    /// Removes and returns the connections whose setting must be reset to the default.
    func takeChanged(_ setting: Setting) -> [ConnectionID] {
        self.changes.removeValue(forKey: setting).map { Array($0.keys) } ?? []
    }
}

/// A push affected by a fault rule.
package final class FaultedPush {
    let effect: FaultEffect
    let stream: StreamID
    let apnsID: APNsID
    /// A copy of the push, to be passed to the engine.
    let kept: KeptPush
    /// The value of `authorization`; nil if it is absent.
    let authorization: [UInt8]?

    init(_ effect: FaultEffect, _ push: Push, from address: StreamAddress, _ authorization: ByteView?) {
        self.effect = effect
        self.stream = StreamID(address)
        self.apnsID = push.apnsID
        self.kept = KeptPush(push, from: address)
        self.authorization = authorization?.array
    }
}
