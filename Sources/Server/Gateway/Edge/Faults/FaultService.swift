import Platform
import Synchronization
package import Wire

/// The fault rules of a gateway. Every loop consults them; operators change them.
///
/// The class is `@unchecked Sendable`: `monitor` guards `script` and `expiredTokens`. The loops share one lock, because
/// a rule counts the pushes of all loops. Pushes take the lock only while there are rules or lasting effects of rules.
package final class FaultService: @unchecked Sendable {
    /// The maximum number of provider tokens that are remembered as expired on all connections. A token that expires
    /// after that is expired only on the connection that sent it.
    private static let expiredTokensMax = 1_024

    private let monitor = Monitor()
    private var script = FaultScript()
    private var expiredTokens: Set<[UInt8]> = []
    private let hasRulesNow = Atomic(false)
    private let hasExpiredTokensNow = Atomic(false)
    private let clearCount = Atomic<UInt64>(0)

    package init(_ rules: [FaultRule]) {
        for rule in rules { _ = self.script.append(rule) }
        self.scriptChanged()
    }

    var hasRules: Bool { self.hasRulesNow.load(ordering: .relaxed) }

    var hasExpiredTokens: Bool { self.hasExpiredTokensNow.load(ordering: .relaxed) }

    /// The number of times that all rules were replaced. A replacement ends the effects of the previous rules on
    /// connections.
    var generation: UInt64 { self.clearCount.load(ordering: .relaxed) }

    // MARK: From loops

    /// True if any rule depends on the key of a provider token.
    var usesProviderKeys: Bool { self.monitor.withLock { self.script.usesProviderKeys } }

    /// Applies the rules to a push that has passed all checks.
    ///
    /// - Returns: the effect on the push; nil if it proceeds unchanged.
    func pushReceived(_ push: FaultCandidate) -> FaultEffect? {
        self.monitor.withLock { self.script.pushReceived(push) }
    }

    /// Treats a provider token as expired on all connections from now on.
    ///
    /// - Parameter authorization: the value of the `authorization` header field.
    func expire(_ authorization: [UInt8]) {
        self.monitor.withLock {
            guard self.expiredTokens.count < Self.expiredTokensMax else { return }
            self.expiredTokens.insert(authorization)
            self.hasExpiredTokensNow.store(true, ordering: .relaxed)
        }
    }

    func isExpired(_ authorization: ByteView) -> Bool {
        let authorization = authorization.array
        return self.monitor.withLock { self.expiredTokens.contains(authorization) }
    }

    // MARK: From operators

    /// Replaces all rules, and ends the effects of the previous rules on tokens and connections.
    func replace(with rules: [FaultRule]) {
        self.monitor.withLock {
            var script = FaultScript()
            for rule in rules { _ = script.append(rule) }
            self.script = script
            self.expiredTokens.removeAll()
            self.hasExpiredTokensNow.store(false, ordering: .relaxed)
            _ = self.clearCount.add(1, ordering: .relaxed)
            self.scriptChanged()
        }
    }

    /// Appends a rule.
    ///
    /// - Returns: the id of the rule.
    /// - Throws: `APIError` if another rule has the same id, or if there are too many rules.
    func append(_ rule: FaultRule) throws(APIError) -> String {
        self.monitor.lock()
        defer { self.monitor.unlock() }
        guard self.script.entries.count < FaultScript.rulesMax else { throw .tooManyFaultRules }
        guard let id = self.script.append(rule) else { throw .faultRuleExists(rule.id ?? "") }
        self.scriptChanged()
        return id
    }

    /// Removes a rule.
    ///
    /// - Throws: `APIError` if no rule has this id.
    func remove(_ id: String) throws(APIError) {
        self.monitor.lock()
        defer { self.monitor.unlock() }
        guard self.script.remove(id) else { throw .unknownFaultRule }
        self.scriptChanged()
    }

    /// Resets the counters of all rules.
    func resetCounters() {
        self.monitor.withLock { self.script.resetCounters() }
    }

    /// Returns `{"rules": [...]}` with all rules and their counters, and `warnings` if there are any.
    func written(warnings: [String] = []) -> [UInt8] {
        let entries = self.monitor.withLock { self.script.entries }
        return JSONWriter.object { writer in
            writer.beginArray("rules")
            for entry in entries {
                writer.beginObject()
                writer.member("id", entry.id)
                writer.member("matched", entry.matched)
                writer.member("fired", entry.fired)
                writer.member("spent", entry.isSpent)
                writer.key("rule")
                entry.rule.text.withByteView { writer.raw($0) }
                writer.endObject()
            }
            writer.endArray()
            if !warnings.isEmpty { Self.write(warnings, to: &writer) }
        }
    }

    /// Writes the member `warnings`.
    static func write(_ warnings: [String], to writer: inout JSONWriter) {
        writer.beginArray("warnings")
        for warning in warnings { writer.string(warning) }
        writer.endArray()
    }

    private func scriptChanged() {
        self.hasRulesNow.store(!self.script.entries.isEmpty, ordering: .relaxed)
    }
}
