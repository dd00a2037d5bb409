package import Engine
package import Platform
package import Wire

/// What one loop has for the engine: collected during a turn and handed over at its end, in one batch. Counts the
/// pushes whose answers are to come.
package final class EngineOutbox {
    private let engine: Mailbox<CommandBatch>
    private var batch = CommandBatch()
    /// The pushes that were handed over and are not answered.
    package private(set) var pushesAtEngine = 0
    /// How many such pushes there may be.
    package var room: PushRoom

    private let events: EventDesk

    /// - Parameters:
    ///   - engine: where batches go.
    ///   - room: how many pushes may be at the engine.
    ///   - events: where those are who follow what happens.
    package init(_ engine: Mailbox<CommandBatch>, room: PushRoom, events: EventDesk = EventDesk()) {
        self.engine = engine
        self.room = room
        self.events = events
    }

    package func append(_ command: EngineCommand) {
        self.batch.append(command)
    }

    /// Takes a push, which is answered at `stream`.
    package func append(_ push: Push, from stream: StreamAddress) {
        self.batch.append(push, from: stream)
    }

    /// A push was refused before it reached the engine, which counts it.
    ///
    /// - `topic`: the one it named; empty when that is none.
    /// - `device`: the one it named, as far as that can be told; asked when somebody follows what happens.
    package func reject(_ reason: APNSReason, topic: [UInt8] = [], _ apnsID: APNsID, device: () -> DeviceToken?) {
        self.batch.append(.rejected(reason: reason.index, topic: topic))
        guard self.events.isWatched else { return }
        self.events.take(
            WatchedEvent(
                at: SystemClock.wall,
                kind: .refused(reason: reason.index),
                topic: String(decoding: topic, as: UTF8.self),
                device: device(),
                apnsID: apnsID
            )
        )
    }

    /// The turn has ended.
    ///
    /// - Parameter step: called when the engine is to be stepped here, for which it calls its parameter.
    package func handOver(stepping step: (() -> Void) -> Void = { $0() }) {
        guard !self.batch.isEmpty else { return }
        self.pushesAtEngine += self.batch.answersDue
        self.batch.notePushesLeave()
        guard self.batch.isStepOfLoop else { return self.engine.submit(&self.batch) }
        step { self.engine.perform(&self.batch) }
    }

    /// The engine has answered a push.
    package func pushAnswered() {
        self.pushesAtEngine -= 1
    }
}
