import Platform

/// What lives on an `HTTPThread`: it is called there, and nowhere else.
package protocol HTTPAgent: AnyObject {
    /// Something became of a request that was started for this agent.
    func received(_ event: HTTPEvent, on loop: HTTPLoop)

    /// The moment that was set for this agent has come, or a descriptor that it watches is ready.
    func momentReached(on loop: HTTPLoop)
}

/// The thread's own side of an `HTTPThread`: starts requests, remembers for whom, and keeps the time.
package final class HTTPLoop {
    /// The longest wait, in milliseconds: nothing depends on it.
    private static let waitMax: Int64 = 60_000

    private let client: HTTPClient
    private var owners: [HTTPRequestID: any HTTPAgent] = [:]
    private var moments = MomentHeap<ObjectIdentifier>()
    private var sleepers: [ObjectIdentifier: any HTTPAgent] = [:]
    private var watchers: [ObjectIdentifier: (agent: any HTTPAgent, descriptors: [PollDescriptor])] = [:]

    init(_ client: HTTPClient) {
        self.client = client
    }

    /// Milliseconds since the machine started, suspended time included.
    package var now: Int64 { SystemClock.boot }

    /// Begins a request; the agent is kept until it has ended, and hears of it.
    ///
    /// - Throws: what cannot even be tried.
    package func start(_ request: HTTPRequest, for agent: any HTTPAgent) throws(HTTPClientError) -> HTTPRequestID {
        let id = try self.client.start(request)
        self.owners[id] = agent
        return id
    }

    /// Ends a request without another event.
    package func cancel(_ id: HTTPRequestID) {
        self.owners[id] = nil
        self.client.cancel(id)
    }

    /// Sets when the agent is called next; nil for never. It is kept until then.
    package func setMoment(_ moment: Int64?, for agent: any HTTPAgent) {
        let key = ObjectIdentifier(agent)
        self.moments.set(key, to: moment)
        self.sleepers[key] = moment == nil ? nil : agent
    }

    /// Sets for which descriptors the agent is called; none to end that. It is kept meanwhile.
    ///
    /// - Parameters:
    ///   - descriptors: those that it is called for when they are readable.
    ///   - writable: those that it is called for when they are writable.
    ///   - agent: who is called.
    package func watch(_ descriptors: [Int32], writable: [Int32] = [], for agent: any HTTPAgent) {
        let watched =
            descriptors.map { PollDescriptor($0, .readable) } + writable.map { PollDescriptor($0, .writable) }
        self.watchers[ObjectIdentifier(agent)] = watched.isEmpty ? nil : (agent, watched)
    }

    /// Calls agents whose moment has come, then waits for the network and hands out what it brought.
    func turn() {
        let now = self.now
        while let key = self.moments.popDue(now) { self.sleepers.removeValue(forKey: key)?.momentReached(on: self) }
        let wait = self.moments.first.map { max(0, min(Self.waitMax, $0 - now)) } ?? Self.waitMax
        let descriptors = self.watchers.values.flatMap(\.descriptors)
        for event in self.client.poll(timeoutMilliseconds: Int(wait), descriptors: descriptors) {
            let owner: (any HTTPAgent)?
            switch event {
            case .head(let id, _), .body(let id, _): owner = self.owners[id]
            case .ended(let id, _): owner = self.owners.removeValue(forKey: id)
            }
            owner?.received(event, on: self)
        }
        for watcher in self.watchers.values where watcher.descriptors.contains(where: Self.isReady) {
            watcher.agent.momentReached(on: self)
        }
    }

    private static func isReady(_ descriptor: PollDescriptor) -> Bool {
        let readiness: Descriptor.Readiness = descriptor.interest == .readable ? .readable : .writable
        return Descriptor.wait(for: descriptor.descriptor, readiness, milliseconds: 0)
    }
}
