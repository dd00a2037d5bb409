import Bytes
package import DeviceEngine

/// What leaves the engine together: the records of one commit, and everything that may be told once they are durable.
///
/// `@unchecked Sendable`: a group has one owner at a time, and changes owners under the lock of `CommitPipeline`.
package final class StepGroup: @unchecked Sendable {
    package internal(set) var records = RecordBatch()
    var effects: PerOutlet<EffectBatch>
    /// When the pushes came that wait for its commit.
    var arrivals: [PushArrival] = []
    /// Among the effects is a list of topics; there is room for no other one.
    var hasTopicList = false
    /// What happened, for the history.
    var history = HistoryBatch()

    init(loopCount: Int) {
        self.effects = PerOutlet(loops: (0..<loopCount).map { _ in EffectBatch() }, webhooks: EffectBatch())
    }

    var isEmpty: Bool {
        self.records.isEmpty && self.history.isEmpty && self.effects.loops.allSatisfy { $0.isEmpty }
            && self.effects.webhooks.isEmpty
    }
}
