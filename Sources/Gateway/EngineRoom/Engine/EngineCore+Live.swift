import DeviceEngine
import LaunchPolicy
import WakeDispatch

extension EngineCore {
    /// The milliseconds between two samples.
    static let sampleInterval: Int64 = 1000

    /// Leaves the sample of this second, and what there is besides for those who watch.
    func takeSample(_ now: Instant) {
        // Seconds that nobody was awake for have no samples.
        let next = self.sampleAt + Self.sampleInterval
        self.sampleAt = next > now.milliseconds ? next : now.milliseconds + Self.sampleInterval
        let at = self.offset.wall(now)
        let totals = self.engine.totals
        let workers = self.workerCounts(nil)
        let rejected = self.rejections.total
        let sample = LiveSample(at: at, totals, rejected: rejected.reduce(0, +), workers)
        guard self.live.isWatched else { return self.live.take(sample, nil) }
        let statistics = Statistics(
            books: totals,
            rejected: rejected,
            workers: workers,
            since: self.countingSince,
            limits: self.timesLimitsWereMet,
            acceptedLoss: self.acceptedLoss
        )
        self.live.take(sample, self.snapshot(at: at, now, statistics))
    }

    private func snapshot(at: Int64, _ now: Instant, _ statistics: Statistics) -> LiveSnapshot {
        let topics = self.engine.topicSnapshots(countMax: LiveSnapshot.topicsMax)
        return LiveSnapshot(
            at: at,
            statistics: statistics,
            topics: topics.map { topic in
                LiveSnapshot.Topic(
                    name: topic.name,
                    books: topic.books,
                    workers: self.workerCounts(topic.index),
                    webhook: self.webhooks[topic.name]
                )
            },
            topicCount: self.engine.topicCount,
            streams: self.dispatcher.streams(countMax: LiveSnapshot.streamsMax).map { stream in
                LiveSnapshot.Stream(
                    topic: self.engine.snapshot(stream.topic).name,
                    snapshot: stream,
                    lag: stream.oldestGivenAt.map { max(0, now.milliseconds - $0.milliseconds) },
                    executionWindow: self.engine.executionWindow(stream.topic)
                )
            },
            streamCount: self.dispatcher.streamCount,
            loopCount: self.stage.group.effects.loops.count,
            isDraining: self.isDraining,
            failure: self.failure?.error.message
        )
    }
}
