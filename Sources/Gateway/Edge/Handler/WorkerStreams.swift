package import Access
package import HTTPTransport

/// The workers' streams of one loop: which are asked for, which are open, what each of them and each connection holds.
package struct WorkerStreams {
    /// Silence on a stream, in milliseconds, after which a comment is sent.
    package static let keepAliveInterval: Int64 = 15_000

    /// What a connection carries.
    package final class Load {
        fileprivate let connection: ConnectionID
        /// The connection's streams, the lowest number first. One that has ended stays until half of them have: taken
        /// out by itself, each would move all behind it, of which there may be thousands.
        fileprivate var opened: [WorkerStream] = []
        private var endedCount = 0
        /// The wakes its streams hold.
        package fileprivate(set) var wakes = 0

        fileprivate init(_ connection: ConnectionID) {
            self.connection = connection
        }

        package var streams: [StreamID] { self.streams { _ in true } }

        /// How many streams are open.
        fileprivate var openCount: Int { self.opened.count - self.endedCount }

        /// Seconds between PINGs: fewer where a wake is in flight; nil for none.
        package var pingSeconds: Int? {
            if self.wakes > 0 { return 5 }
            return self.openCount == 0 ? nil : 30
        }

        /// The place of an open stream.
        fileprivate func place(of number: Int32) -> Int? {
            let place = self.firstPlace(from: number)
            guard place < self.opened.count, self.opened[place].number == number, !self.opened[place].hasEnded else {
                return nil
            }
            return place
        }

        /// The place of the stream with this number, or of the first one behind it.
        private func firstPlace(from number: Int32) -> Int {
            var (low, high) = (0, self.opened.count)
            while low < high {
                let middle = (low + high) / 2
                if self.opened[middle].number < number { low = middle + 1 } else { high = middle }
            }
            return low
        }

        /// The open streams that are meant.
        fileprivate func streams(where isMeant: (WorkerStream) -> Bool) -> [StreamID] {
            self.opened.compactMap { stream in
                guard !stream.hasEnded, isMeant(stream) else { return nil }
                return StreamID(connection: self.connection, number: stream.number)
            }
        }

        /// A stream begins that is not open.
        fileprivate func begin(_ stream: WorkerStream) {
            let place = self.firstPlace(from: stream.number)
            if place < self.opened.count, self.opened[place].number == stream.number {
                self.endedCount -= 1
                self.opened[place] = stream
            } else {
                self.opened.insert(stream, at: place)
            }
        }

        /// The open stream at a place has ended.
        fileprivate func end(_ place: Int) {
            self.wakes -= self.opened[place].wakes
            self.opened[place].hasEnded = true
            self.endedCount += 1
            guard self.endedCount * 2 > self.opened.count else { return }
            self.opened.removeAll { $0.hasEnded }
            self.endedCount = 0
        }
    }

    fileprivate struct WorkerStream {
        let number: Int32
        /// What its worker showed; nil when nobody asked.
        let proof: ShownProof?
        /// When something was last written to it, by the monotonic clock in milliseconds.
        var lastWrite: Int64
        /// The wakes it holds.
        var wakes = 0
        var isPaused = false
        var hasEnded = false
    }

    /// What workers showed whose subscriptions are at the engine; nil of those whom nobody asked.
    private var asked: [StreamID: ShownProof?] = [:]
    /// By the places of their connections.
    private var loads: [Load?] = []
    private var openCount = 0

    package init() {}

    package var isEmpty: Bool { self.openCount == 0 }

    package func isOpen(_ stream: StreamID) -> Bool { self.find(stream) != nil }

    /// What carries an open stream, and its place there.
    @inline(__always)
    private func find(_ stream: StreamID) -> (load: Load, place: Int)? {
        guard let load = self.load(of: stream.connection), let place = load.place(of: stream.number) else { return nil }
        return (load, place)
    }

    /// What a connection carries; nil for one that carries no worker's stream, nor did since it was `removeAll`.
    package func load(of connection: ConnectionID) -> Load? {
        let place = Int(connection.index)
        guard place < self.loads.count, let load = self.loads[place], load.connection == connection else { return nil }
        return load
    }

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

    /// A stream is open; one that is already stays as it is.
    ///
    /// - `proof`: what its worker showed; nil when nobody asked.
    package mutating func begin(_ stream: StreamID, _ proof: ShownProof?, now: Int64) {
        let load = self.load(of: stream.connection) ?? self.beginLoad(of: stream.connection)
        guard load.place(of: stream.number) == nil else { return }
        load.begin(WorkerStream(number: stream.number, proof: proof, lastWrite: now))
        self.openCount += 1
    }

    private mutating func beginLoad(of connection: ConnectionID) -> Load {
        let (load, place) = (Load(connection), Int(connection.index))
        if place >= self.loads.count {
            self.loads += Array(repeating: nil, count: place + 1 - self.loads.count)
        }
        // Whoever had the place before is gone, and its streams with it.
        self.openCount -= self.loads[place]?.openCount ?? 0
        self.loads[place] = load
        return load
    }

    /// A stream is gone, and what it held with it.
    ///
    /// - Returns: whether it was open.
    package mutating func remove(_ stream: StreamID) -> Bool {
        guard let (load, place) = self.find(stream) else { return false }
        load.end(place)
        self.openCount -= 1
        return true
    }

    /// Forgets a connection with all its open streams.
    ///
    /// - Returns: those streams.
    package mutating func removeAll(of connection: ConnectionID) -> [StreamID] {
        guard let load = self.load(of: connection) else { return [] }
        self.loads[Int(connection.index)] = nil
        self.openCount -= load.openCount
        return load.streams
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
        guard let (load, place) = self.find(stream) else { return nil }
        load.opened[place].wakes += change
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
        guard let (load, place) = self.find(stream) else { return false }
        load.opened[place].lastWrite = now
        guard queued > bytesMax, !load.opened[place].isPaused else { return false }
        load.opened[place].isPaused = true
        return true
    }

    /// Half of what a stream was sent has left.
    ///
    /// - Returns: whether it may get new wakes again.
    package mutating func drained(_ stream: StreamID) -> Bool {
        guard let (load, place) = self.find(stream), load.opened[place].isPaused else { return false }
        load.opened[place].isPaused = false
        return true
    }

    // MARK: Every second

    /// The streams that were sent nothing for `keepAliveInterval`.
    package func silent(now: Int64) -> [StreamID] {
        self.streams { now - $0.lastWrite >= Self.keepAliveInterval }
    }

    /// The streams whose proof `isGood` refuses.
    package func withoutProof(_ isGood: (ShownProof?) -> Bool) -> [StreamID] {
        self.streams { !isGood($0.proof) }
    }

    private func streams(where isMeant: (WorkerStream) -> Bool) -> [StreamID] {
        self.loads.flatMap { $0?.streams(where: isMeant) ?? [] }
    }
}
