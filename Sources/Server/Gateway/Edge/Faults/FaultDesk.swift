import Platform
import Synchronization
import Wire

/// The fault rules of a gateway: every loop asks, operators change them.
///
/// It is `Sendable` without the compiler's proof: `monitor` guards `script` and `expiredTokens`. The rules count over
/// all loops, so they have one lock; a gateway without rules never takes it.
final class FaultDesk: @unchecked Sendable {
    /// The most provider tokens that are remembered as expired; with further ones only their connections are.
    private static let expiredTokensMax = 1_024

    private let monitor = Monitor()
    private var script = FaultScript()
    private var expiredTokens: Set<[UInt8]> = []
    private let hasRulesNow = Atomic(false)
    private let hasExpiredTokensNow = Atomic(false)
    private let clearCount = Atomic<UInt64>(0)

    init(_ rules: [FaultRule]) {
        for rule in rules { _ = self.script.append(rule) }
        self.scriptChanged()
    }

    /// Whether there are rules to ask.
    var hasRules: Bool { self.hasRulesNow.load(ordering: .relaxed) }

    var hasExpiredTokens: Bool { self.hasExpiredTokensNow.load(ordering: .relaxed) }

    /// Counts how often everything was cleared: what rules have done to connections ends with that.
    var generation: UInt64 { self.clearCount.load(ordering: .relaxed) }

    // MARK: From loops

    /// Whether some rule looks at the key of a provider token.
    var looksAtKeys: Bool { self.monitor.withLock { self.script.looksAtKeys } }

    /// A push has passed every check.
    ///
    /// - Returns: what happens to it; nil when it goes on.
    func pushReceived(_ push: FaultCandidate) -> FaultEffect? {
        self.monitor.withLock { self.script.pushReceived(push) }
    }

    /// Takes a provider token as expired from now on.
    ///
    /// - Parameter authorization: the value of the header field.
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

    /// Replaces every rule; what the old ones have done to tokens and connections ends.
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

    /// Adds a rule behind the others.
    ///
    /// - Returns: its id.
    /// - Throws: `APIError` when another rule has its id, or there are too many.
    func append(_ rule: FaultRule) throws(APIError) -> String {
        self.monitor.lock()
        defer { self.monitor.unlock() }
        guard self.script.entries.count < FaultScript.rulesMax else { throw .tooManyFaultRules }
        guard let id = self.script.append(rule) else { throw .faultRuleExists(rule.id ?? "") }
        self.scriptChanged()
        return id
    }

    /// - Throws: `APIError` when no rule has this id.
    func remove(_ id: String) throws(APIError) {
        self.monitor.lock()
        defer { self.monitor.unlock() }
        guard self.script.remove(id) else { throw .unknownFaultRule }
        self.scriptChanged()
    }

    /// Begins every count anew.
    func resetCounters() {
        self.monitor.withLock { self.script.resetCounters() }
    }

    /// Writes `{"rules": [...]}`, and the warnings of what was just read.
    func write(to writer: inout JSONWriter, warnings: [String] = []) {
        let entries = self.monitor.withLock { self.script.entries }
        writer.beginObject()
        writer.key("rules")
        writer.beginArray()
        for entry in entries {
            writer.beginObject()
            writer.key("id")
            writer.string(entry.id)
            writer.key("matched")
            writer.integer(entry.matched)
            writer.key("fired")
            writer.integer(entry.fired)
            writer.key("spent")
            writer.bool(entry.isSpent)
            writer.key("rule")
            entry.rule.text.withByteView { writer.raw($0) }
            writer.endObject()
        }
        writer.endArray()
        if !warnings.isEmpty { Self.write(warnings, to: &writer) }
        writer.endObject()
    }

    /// Writes the member `warnings`.
    static func write(_ warnings: [String], to writer: inout JSONWriter) {
        writer.key("warnings")
        writer.beginArray()
        for warning in warnings { writer.string(warning) }
        writer.endArray()
    }

    private func scriptChanged() {
        self.hasRulesNow.store(!self.script.entries.isEmpty, ordering: .relaxed)
    }
}
