import Engine
package import Policy

/// A sampler that takes a sample of the counters every second, and also a snapshot while operators watch.
package final class LiveSampler {
    /// The interval between two samples, in milliseconds.
    private static let interval: Int64 = 1000

    /// The time of the next sample, in milliseconds of policy time.
    package private(set) var nextAt: Int64 = 0
    private let service: LiveService

    package init(_ service: LiveService) {
        self.service = service
    }

    /// Takes a sample if the next one is due.
    package func look(_ now: Instant, _ workspace: Workspace, _ room: RoomState, loopCount: Int) {
        guard now.milliseconds >= self.nextAt else { return }
        // No samples are made up for the seconds during which the process was suspended.
        let next = self.nextAt + Self.interval
        self.nextAt = next > now.milliseconds ? next : now.milliseconds + Self.interval
        workspace.dispatcher.advanceDurations(to: now)
        if workspace.failure == nil { room.recent.look(workspace.engine, now) }
        let at = workspace.offset.wall(now)
        let rejected = room.records.rejectionsShown.total.reduce(0, +)
        let workers = workspace.workerCounts(nil)
        let sample = LiveSample(at: at, workspace.engine.totalsShown, rejected: rejected, workers)
        guard self.service.isWatched else { return self.service.take(sample, nil) }
        self.service.take(sample, self.snapshot(at: at, now, workspace, room, loopCount))
    }

    private func snapshot(
        at: Int64,
        _ now: Instant,
        _ workspace: Workspace,
        _ room: RoomState,
        _ loopCount: Int
    ) -> LiveSnapshot {
        let (engine, dispatcher) = (workspace.engine, workspace.dispatcher)
        return LiveSnapshot(
            at: at,
            statistics: workspace.statistics(nil, room),
            topics: engine.topicSnapshots(countMax: LiveSnapshot.topicsMax).map { topic in
                LiveSnapshot.Topic(
                    snapshot: topic,
                    workers: workspace.workerCounts(topic.index),
                    webhook: room.webhooks[topic.name],
                    recent: workspace.recent(topic.index, room)
                )
            },
            topicCount: engine.topicCount,
            streams: dispatcher.streams(countMax: LiveSnapshot.streamsMax).map { stream in
                LiveSnapshot.Stream(
                    topic: engine.snapshot(stream.topic).name,
                    snapshot: stream,
                    lag: stream.oldestGivenAt.map { max(0, now.milliseconds - $0.milliseconds) },
                    executionWindow: stream.oldestWake.flatMap { engine.executionWindow(ofWake: $0) }
                        ?? engine.executionWindow(stream.topic)
                )
            },
            streamCount: dispatcher.streamCount,
            loopCount: loopCount,
            isDraining: room.isDraining,
            failure: workspace.failure?.error.message
        )
    }
}
