package import Wire

/// The wakes of streams that have ended, until they are lost: some streams held thousands.
package struct EndedStreams: ~Copyable {
    private var streams = FIFOQueue<Subscription>()
    /// The wakes of the stream that was taken last, the next one last.
    private var wakes: [WakeID] = []

    /// No streams.
    package init() {}

    /// Whether nothing is left to be lost.
    package var isEmpty: Bool { self.wakes.isEmpty && self.streams.isEmpty }

    /// A stream has ended.
    package mutating func append(_ stream: Subscription) {
        if !stream.wakes.isEmpty { self.streams.append(stream) }
    }

    /// Takes the next wake that is to be lost.
    package mutating func popWake() -> WakeID? {
        while self.wakes.isEmpty, let stream = self.streams.popFirst() {
            // In the order of their ids, whatever came and went before.
            self.wakes = stream.wakes.sortedWakes.reversed()
        }
        return self.wakes.popLast()
    }
}
