package import APNSProtocol
package import Bytes
package import EngineRoom
package import Platform

/// What one loop has for the engine: collected during a turn and handed over at its end, in one batch. Counts the
/// pushes whose answers are to come.
package final class EngineOutbox {
    private let engine: Mailbox<CommandBatch>
    private var batch = CommandBatch()
    /// The pushes that were handed over and are not answered.
    package private(set) var pushesAtEngine = 0

    package init(_ engine: Mailbox<CommandBatch>) {
        self.engine = engine
    }

    package func append(_ command: EngineCommand) {
        self.batch.append(command)
    }

    /// Takes a push; the counts of `push` are those of the views.
    package func append(
        _ push: PushCommand,
        topic: ByteView,
        collapseID: ByteView,
        payload: ByteView,
        trace: ByteView
    ) {
        self.batch.append(push, topic: topic, collapseID: collapseID, payload: payload, trace: trace)
    }

    /// A push was refused before it reached the engine, which counts it.
    ///
    /// - `topic`: the one it named; empty when that is none.
    package func reject(_ reason: APNSReason, topic: [UInt8] = []) {
        self.batch.append(.rejected(reason: reason.index, topic: topic))
    }

    /// The turn has ended.
    package func handOver() {
        guard !self.batch.isEmpty else { return }
        self.pushesAtEngine += self.batch.answersDue
        self.batch.notePushesLeave()
        self.engine.submit(&self.batch)
    }

    /// The engine has answered a push.
    package func pushAnswered() {
        self.pushesAtEngine -= 1
    }
}
