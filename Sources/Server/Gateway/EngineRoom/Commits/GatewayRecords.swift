package import Engine
package import Policy
import Wire

/// What a gateway keeps besides its devices, and what of that the next commit has to store.
package final class GatewayRecords {
    /// How long refused pushes may stay unwritten, in milliseconds.
    private static let rejectionsInterval: Int64 = 1000

    /// When the counters began, in milliseconds since 1970.
    package internal(set) var countingSince: Int64
    /// What this start gave up of what was once committed, which is not kept; nil when nothing was missing.
    let acceptedLoss: StoreLoss?
    package internal(set) var rejections: Rejections
    /// What all gateways on a shared store have refused, as of their last count; nil where there is but one.
    var rejectionsOfAll: Rejections?
    /// Which launch policies were in force when.
    package internal(set) var policies: PolicyVersions
    private var arePoliciesChanged = false
    /// The state says, or is about to say, that workers were asked who they are.
    private var wereWorkersAsked: Bool
    private var isAskingNew = false
    private var rejectionsStoredAt: Int64 = 0

    package init(
        countingSince: Int64,
        acceptedLoss: StoreLoss? = nil,
        rejections: Rejections = Rejections(),
        policies: PolicyVersions = PolicyVersions(),
        wereWorkersAsked: Bool = false
    ) {
        self.countingSince = countingSince
        self.acceptedLoss = acceptedLoss
        self.rejections = rejections
        self.policies = policies
        self.wereWorkersAsked = wereWorkersAsked
    }

    /// The refused pushes that are shown.
    var rejectionsShown: Rejections { self.rejectionsOfAll ?? self.rejections }

    /// A push was refused.
    ///
    /// - `topic`: nil when it named none that is known.
    package func countRejected(_ reason: Int, _ topic: TopicIndex?, by count: Int64 = 1) {
        self.rejections.count(reason, topic, by: count)
    }

    /// The policies of a configuration are in force from `now` on.
    package func begin(_ configuration: EngineConfiguration, at now: Instant) {
        if self.policies.begin(configuration, at: now) { self.arePoliciesChanged = true }
    }

    /// Workers are asked who they are from here on.
    package func workersAsked() {
        guard !self.wereWorkersAsked else { return }
        self.wereWorkersAsked = true
        self.isAskingNew = true
    }

    /// Whether something has to be stored, `monotonic` being the time in milliseconds.
    package func hasChanges(at monotonic: Int64) -> Bool {
        self.arePoliciesChanged || self.isAskingNew || self.areRejectionsDue(at: monotonic)
    }

    /// Nothing stays unwritten for a while any more.
    package func hurry() { self.rejectionsStoredAt = 0 }

    /// Takes what has to be stored, `monotonic` being the time in milliseconds.
    package func takeChanges(into batch: inout RecordBatch, at monotonic: Int64) {
        self.takePolicies(into: &batch)
        if self.isAskingNew {
            self.storeAsking(into: &batch)
            self.isAskingNew = false
        }
        if self.areRejectionsDue(at: monotonic) {
            self.rejections.takeChanges(into: &batch)
            self.rejectionsStoredAt = monotonic
        }
    }

    /// Takes what a start stores whatever has changed.
    ///
    /// - `isAsking`: workers are asked who they are.
    package func takeBeginning(into batch: inout RecordBatch, isAsking: Bool) {
        batch.append(RecordKey(.origin)) { $0.append(memoryOf: self.countingSince.littleEndian) }
        if isAsking { self.storeAsking(into: &batch) }
        self.takePolicies(into: &batch)
    }

    private func areRejectionsDue(at monotonic: Int64) -> Bool {
        self.rejections.hasChanges && monotonic - self.rejectionsStoredAt >= Self.rejectionsInterval
    }

    private func takePolicies(into batch: inout RecordBatch) {
        guard self.arePoliciesChanged else { return }
        batch.append(RecordKey(.policies)) { self.policies.store(to: &$0) }
        self.arePoliciesChanged = false
    }

    private func storeAsking(into batch: inout RecordBatch) {
        batch.append(.workersAsked) { $0.append(memoryOf: self.countingSince.littleEndian) }
    }
}
