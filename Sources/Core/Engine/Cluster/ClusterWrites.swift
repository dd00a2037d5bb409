package import Wire

/// What one transaction writes.
package struct ClusterWrites {
    package var devices: [SharedDeviceChange] = []
    /// What this transaction adds to what is counted, by topic; the store counts all together itself.
    package var counts: [(topic: TopicIndex, added: Books)] = []
    /// Refused pushes of this gateway since it was attached, as `Rejections` keeps them: those of the topics that
    /// changed, and `RecordKey.everyTopic`.
    package var rejections: [(topic: UInt32, content: [UInt8])] = []
    /// What happened, for the delivery log.
    package var events: [HistoryEvent] = []

    package init() {}

    /// The wakes that are in flight no more.
    package var endedWakes: [WakeID] {
        var wakes: [WakeID] = []
        for index in self.devices.indices where !self.devices[index].ended.isEmpty {
            wakes += self.devices[index].ended
        }
        return wakes
    }
}
