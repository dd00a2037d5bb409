package import Access
package import HTTPTransport

/// The workers' streams of one loop: which are asked for, which are open, what each of them and each connection holds.
package struct WorkerStreams {
    /// Silence on a stream, in milliseconds, after which a comment is sent.
    package static let keepAliveInterval: Int64 = 15_000

    /// What a connection carries.
    package struct Load {
        package var streams: Set<StreamID> = []
        /// The wakes its streams hold.
        package var wakes = 0

        /// Seconds between PINGs: fewer where a wake is in flight; nil for none.
        package var pingSeconds: Int? {
            if self.wakes > 0 { return 5 }
            return self.streams.isEmpty ? nil : 30
        }
    }

    private struct OpenStream {
        /// What its worker showed; nil when nobody asked.
        let proof: ShownProof?
        /// When something was last written to it, by the monotonic clock in milliseconds.
        var lastWrite: Int64
        /// The wakes it holds.
        var wakes = 0
        var isPaused = false
    }

    /// What workers showed whose subscriptions are at the engine.
    private var asked: [StreamID: ShownProof] = [:]
    private var open: [StreamID: OpenStream] = [:]
    private var loads: [ConnectionID: Load] = [:]

    package init() {}

    package var isEmpty: Bool { self.open.isEmpty }

    package func isOpen(_ stream: StreamID) -> Bool { self.open[stream] != nil }

    /// What a connection carries; nil for one that carries no worker's stream, nor did since it was `removeAll`.
    package func load(of connection: ConnectionID) -> Load? { self.loads[connection] }

    // MARK: Coming and going

    /// A stream is asked for; whatever comes of that, `takeAsked` follows.
    ///
    /// - `proof`: what its worker showed; nil when nobody asked.
    package mutating func ask(_ stream: StreamID, _ proof: ShownProof?) {
        self.asked[stream] = proof
    }

    /// The engine has answered, or the stream is gone.
    ///
    /// - Returns: what the stream's worker showed.
    @discardableResult
    package mutating func takeAsked(_ stream: StreamID) -> ShownProof? {
        self.asked.removeValue(forKey: stream)
    }

    package mutating func begin(_ stream: StreamID, _ proof: ShownProof?, now: Int64) {
        self.open[stream] = OpenStream(proof: proof, lastWrite: now)
        self.loads[stream.connection, default: Load()].streams.insert(stream)
    }

    /// A stream is gone, and what it held with it.
    ///
    /// - Returns: whether it was open.
    package mutating func remove(_ stream: StreamID) -> Bool {
        guard let ended = self.open.removeValue(forKey: stream) else { return false }
        self.loads[stream.connection]?.streams.remove(stream)
        self.loads[stream.connection]?.wakes -= ended.wakes
        return true
    }

    /// Forgets a connection with all its open streams.
    ///
    /// - Returns: those streams.
    package mutating func removeAll(of connection: ConnectionID) -> Set<StreamID> {
        let streams = self.loads.removeValue(forKey: connection)?.streams ?? []
        for stream in streams { self.open[stream] = nil }
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
        // Where each is found is looked up once.
        guard let place = self.open.index(forKey: stream) else { return nil }
        self.open.values[place].wakes += change
        guard let load = self.loads.index(forKey: stream.connection) else { return nil }
        self.loads.values[load].wakes += change
        return self.loads.values[load].wakes
    }

    // MARK: Bytes

    /// Bytes were written to a stream.
    ///
    /// - `queued`: how many wait on it by now.
    /// - `bytesMax`: how many may.
    /// - Returns: whether it is to get no new wakes from now on.
    package mutating func wrote(to stream: StreamID, queued: Int, bytesMax: Int, now: Int64) -> Bool {
        guard let place = self.open.index(forKey: stream) else { return false }
        self.open.values[place].lastWrite = now
        guard queued > bytesMax, !self.open.values[place].isPaused else { return false }
        self.open.values[place].isPaused = true
        return true
    }

    /// Half of what a stream was sent has left.
    ///
    /// - Returns: whether it may get new wakes again.
    package mutating func drained(_ stream: StreamID) -> Bool {
        guard self.open[stream]?.isPaused == true else { return false }
        self.open[stream]?.isPaused = false
        return true
    }

    // MARK: Every second

    /// The streams that were sent nothing for `keepAliveInterval`.
    package func silent(now: Int64) -> [StreamID] {
        self.open.compactMap { now - $1.lastWrite >= Self.keepAliveInterval ? $0 : nil }
    }

    /// The streams whose proof `isGood` refuses.
    package func withoutProof(_ isGood: (ShownProof?) -> Bool) -> [StreamID] {
        self.open.compactMap { isGood($1.proof) ? nil : $0 }
    }
}
