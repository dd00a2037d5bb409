import Engine
package import Policy

/// A sampler that takes a sample of the counters every second, and also a snapshot while operators watch.
package final class LiveSampler {
    /// The interval between two samples, in milliseconds.
    private static let interval: Int64 = 1000

    /// The time of the next sample, in milliseconds of policy time.
    package private(set) var nextAt: Int64 = 0
    private let service: LiveService
    private let records: GatewayRecords

    package init(_ service: LiveService, _ records: GatewayRecords) {
        self.service = service
        self.records = records
    }

    /// Takes a sample if the next one is due.
    package func look(_ now: Instant, _ workspace: Workspace, _ requests: RequestService, loopCount: Int) {
        guard now.milliseconds >= self.nextAt else { return }
        // No samples are made up for the seconds during which the process was suspended.
        let next = self.nextAt + Self.interval
        self.nextAt = next > now.milliseconds ? next : now.milliseconds + Self.interval
        workspace.dispatcher.advanceDurations(to: now)
        if workspace.failure == nil { requests.room.recent.look(workspace.engine, now) }
        let at = workspace.offset.wall(now)
        let rejected = self.records.rejectionsShown.total.reduce(0, +)
        let workers = workspace.workerCounts(nil)
        let sample = LiveSample(at: at, workspace.engine.totalsShown, rejected: rejected, workers)
        guard self.service.isWatched else { return self.service.take(sample, nil) }
        self.service.take(sample, self.snapshot(at: at, now, workspace, requests, loopCount))
    }

    private func snapshot(
        at: Int64,
        _ now: Instant,
        _ workspace: Workspace,
        _ requests: RequestService,
        _ loopCount: Int
    ) -> LiveSnapshot {
        let (engine, dispatcher) = (workspace.engine, workspace.dispatcher)
        return LiveSnapshot(
            at: at,
            statistics: workspace.statistics(requests.room),
            topics: engine.topicSnapshots(countMax: LiveSnapshot.topicsMax).map { topic in
                LiveSnapshot.Topic(
                    name: topic.name,
                    counters: topic.countersShown,
                    isPaused: topic.isPaused,
                    workers: workspace.workerCounts(topic.index),
                    webhook: requests.webhooks[topic.name],
                    recent: workspace.recent(topic.index, requests.room)
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
            isDraining: requests.isDraining,
            failure: workspace.failure?.error.message
        )
    }
}
