package import Access
package import HTTPTransport

/// The workers' streams of one loop: which are asked for, which are open, what each of them and each connection holds.
package struct WorkerStreams {
    /// Silence on a stream, in milliseconds, after which a comment is sent.
    package static let keepAliveInterval: Int64 = 15_000

    /// What a connection carries. All its open streams share one, so that a wake looks for its stream alone.
    package final class Load {
        package fileprivate(set) var streams: Set<StreamID> = []
        /// The wakes its streams hold.
        package fileprivate(set) var wakes = 0

        /// Seconds between PINGs: fewer where a wake is in flight; nil for none.
        package var pingSeconds: Int? {
            if self.wakes > 0 { return 5 }
            return self.streams.isEmpty ? nil : 30
        }
    }

    /// What tells the open streams of a loop apart: the place of its connection, and its number. Two connections that
    /// have a place in turn may have streams of one number, so that what is found is compared with who was meant.
    private typealias Key = UInt64

    private struct OpenStream {
        let id: StreamID
        let load: Load
        /// What its worker showed; nil when nobody asked.
        let proof: ShownProof?
        /// When something was last written to it, by the monotonic clock in milliseconds.
        var lastWrite: Int64
        /// The wakes it holds.
        var wakes = 0
        var isPaused = false
    }

    /// What workers showed whose subscriptions are at the engine; nil of those whom nobody asked.
    private var asked: [StreamID: ShownProof?] = [:]
    private var open: [Key: OpenStream] = [:]
    private var loads: [ConnectionID: Load] = [:]

    package init() {}

    package var isEmpty: Bool { self.open.isEmpty }

    package func isOpen(_ stream: StreamID) -> Bool { self.find(stream) != nil }

    private static func key(_ stream: StreamID) -> Key {
        Key(stream.connection.index) << 32 | Key(UInt32(bitPattern: stream.number))
    }

    @inline(__always)
    private func find(_ stream: StreamID) -> Dictionary<Key, OpenStream>.Index? {
        guard let place = self.open.index(forKey: Self.key(stream)), self.open.values[place].id == stream else {
            return nil
        }
        return place
    }

    /// What a connection carries; nil for one that carries no worker's stream, nor did since it was `removeAll`.
    package func load(of connection: ConnectionID) -> Load? { self.loads[connection] }

    // MARK: Coming and going

    /// A stream is asked for; whatever comes of that, `takeAsked` follows.
    ///
    /// - `proof`: what its worker showed; nil when nobody asked.
    package mutating func ask(_ stream: StreamID, _ proof: ShownProof?) {
        self.asked.updateValue(proof, forKey: stream)
    }

    /// Whether a stream is asked for and nothing has come of it yet.
    package func isAsked(_ stream: StreamID) -> Bool { !self.asked.isEmpty && self.asked[stream] != nil }

    /// The engine has answered, or the stream is gone.
    ///
    /// - Returns: what the stream's worker showed.
    @discardableResult
    package mutating func takeAsked(_ stream: StreamID) -> ShownProof? {
        self.asked.isEmpty ? nil : self.asked.removeValue(forKey: stream) ?? nil
    }

    package mutating func begin(_ stream: StreamID, _ proof: ShownProof?, now: Int64) {
        let load = self.loads[stream.connection] ?? Load()
        load.streams.insert(stream)
        self.loads[stream.connection] = load
        self.open[Self.key(stream)] = OpenStream(id: stream, load: load, proof: proof, lastWrite: now)
    }

    /// A stream is gone, and what it held with it.
    ///
    /// - Returns: whether it was open.
    package mutating func remove(_ stream: StreamID) -> Bool {
        guard let place = self.find(stream) else { return false }
        let ended = self.open.remove(at: place).value
        ended.load.streams.remove(stream)
        ended.load.wakes -= ended.wakes
        return true
    }

    /// Forgets a connection with all its open streams.
    ///
    /// - Returns: those streams.
    package mutating func removeAll(of connection: ConnectionID) -> Set<StreamID> {
        let streams = self.loads.removeValue(forKey: connection)?.streams ?? []
        for stream in streams {
            if let place = self.find(stream) { self.open.remove(at: place) }
        }
        return streams
    }

    // MARK: Wakes

    /// A stream holds one more.
    ///
    /// - Returns: whether it is the first of its connection; nil when the stream is not open.
    package mutating func give(to stream: StreamID) -> Bool? { self.change(stream, by: 1).map { $0 == 1 } }

    /// A stream holds one less.
    ///
    /// - Returns: whether it was the last of its connection; nil when the stream is not open.
    package mutating func release(from stream: StreamID) -> Bool? { self.change(stream, by: -1).map { $0 == 0 } }

    /// - Returns: how many the connection holds then.
    private mutating func change(_ stream: StreamID, by change: Int) -> Int? {
        guard let place = self.find(stream) else { return nil }
        self.open.values[place].wakes += change
        let load = self.open.values[place].load
        load.wakes += change
        return load.wakes
    }

    // MARK: Bytes

    /// Bytes were written to a stream.
    ///
    /// - `queued`: how many wait on it by now.
    /// - `bytesMax`: how many may.
    /// - Returns: whether it is to get no new wakes from now on.
    package mutating func wrote(to stream: StreamID, queued: Int, bytesMax: Int, now: Int64) -> Bool {
        guard let place = self.find(stream) else { return false }
        self.open.values[place].lastWrite = now
        guard queued > bytesMax, !self.open.values[place].isPaused else { return false }
        self.open.values[place].isPaused = true
        return true
    }

    /// Half of what a stream was sent has left.
    ///
    /// - Returns: whether it may get new wakes again.
    package mutating func drained(_ stream: StreamID) -> Bool {
        guard let place = self.find(stream), self.open.values[place].isPaused else { return false }
        self.open.values[place].isPaused = false
        return true
    }

    // MARK: Every second

    /// The streams that were sent nothing for `keepAliveInterval`.
    package func silent(now: Int64) -> [StreamID] {
        self.open.values.compactMap { now - $0.lastWrite >= Self.keepAliveInterval ? $0.id : nil }
    }

    /// The streams whose proof `isGood` refuses.
    package func withoutProof(_ isGood: (ShownProof?) -> Bool) -> [StreamID] {
        self.open.values.compactMap { isGood($0.proof) ? nil : $0.id }
    }
}
