package import Policy
package import Wire

extension EmbeddedEngine {
    /// Somebody follows what happens, or nobody does.
    ///
    /// - `offset`: wall clock minus policy time; nil when nobody follows.
    /// - `now`: the present, which a step of a shared store does not go on to by itself.
    package func watch(_ offset: WallOffset?, at now: Instant) {
        self.watchOffset = offset
        self.watchedAt = now
    }

    /// Hands over what happened since the last call, for those who follow it.
    package func takeWatched(into events: inout WatchedEvents) {
        if !self.watched.isEmpty { events.append(&self.watched) }
    }

    /// A push was refused, which somebody may follow.
    package func noteRefused(_ token: DeviceToken, _ apnsID: APNsID, topic: ByteView, reason: Int) {
        guard let offset = self.watchOffset else { return }
        self.watched.append(
            WatchedEvent(
                at: offset.wall(max(self.now, self.watchedAt)),
                kind: .refused(reason: reason),
                topic: topic.string,
                device: token,
                apnsID: apnsID
            )
        )
    }

    /// A topic was paused, or launches by itself again, which somebody may follow.
    package func notePaused(_ topic: TopicIndex, _ isPaused: Bool) {
        guard let offset = self.watchOffset else { return }
        let kind: WatchedEvent.Kind = isPaused ? .paused : .resumed
        // In a shared store the present of the engine is that of its last transaction.
        let moment = offset.wall(max(self.now, self.watchedAt))
        self.watched.append(WatchedEvent(at: moment, kind: kind, topic: self.topics.name(topic)))
    }

    /// Something happened that the history keeps, and somebody follows it.
    func watch(
        _ device: DeviceIndex,
        _ kind: HistoryEvent.Kind,
        _ apnsID: APNsID?,
        related: APNsID? = nil,
        wake: WakeID? = nil,
        name: String? = nil,
        _ offset: WallOffset
    ) {
        let record = self.devices[device]
        self.watched.append(
            WatchedEvent(
                at: offset.wall(self.now),
                kind: .kept(kind),
                topic: self.topics.name(record.topic),
                device: record.token.token,
                apnsID: apnsID,
                related: related,
                wake: wake,
                name: name
            )
        )
    }
}
