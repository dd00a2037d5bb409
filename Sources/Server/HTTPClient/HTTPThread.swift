import Platform
import Wire

/// A thread for the requests of Swift tasks, which await or stream the answers.
///
/// It is created at the first use and never ends. Thousands of streams share it.
///
/// `@unchecked Sendable`: `monitor` guards all fields that change.
package final class HTTPThread: @unchecked Sendable {
    /// A closure to run on the thread. The struct avoids wrapping the closure again at each read.
    private struct Work: Sendable {
        let run: @Sendable (HTTPLoop) -> Void
    }

    private let monitor = Monitor()
    private var waiting: [Work] = []
    private let waker: HTTPWaker

    private static let instance = Result { () throws(HTTPClientError) in try HTTPThread() }

    /// Returns the thread of this process.
    ///
    /// - Throws: `unavailable` if libcurl cannot be set up or no thread can be created.
    package static func shared() throws(HTTPClientError) -> HTTPThread {
        try self.instance.get()
    }

    private init() throws(HTTPClientError) {
        // Only the new thread will own the client.
        let client = try HTTPClient()
        self.waker = client.waker
        let moved = Handover(client)
        do throws(ThreadFailure) {
            // Other threads handle signals.
            try NamedThread("network", signals: .blocked) { [self] in self.run(HTTPLoop(moved.take())) }
        } catch {
            throw HTTPClientError(.unavailable, "no thread can be made for the network; raise the limit of threads")
        }
    }

    /// Runs `work` on the thread as soon as possible. Calls are run in order.
    package func submit(_ work: @escaping @Sendable (HTTPLoop) -> Void) {
        self.monitor.lock()
        self.waiting.append(Work(run: work))
        let isFirst = self.waiting.count == 1
        self.monitor.unlock()
        if isFirst { self.waker.wake() }
    }

    /// Sends a request and waits for the complete answer.
    ///
    /// - Throws: `cancelled` if the task was cancelled; otherwise the error of the request.
    package func perform(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        let exchange = HTTPExchange()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.submit { exchange.begin(request, continuation, on: $0) }
            }
        } onCancel: {
            self.submit { exchange.cancel(on: $0) }
        }
        return try result.get()
    }

    /// Waits until `milliseconds` have passed or the task is cancelled.
    package func wait(milliseconds: Int64) async {
        let alarm = HTTPAlarm()
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.submit { alarm.begin(milliseconds, continuation, on: $0) }
            }
        } onCancel: {
            self.submit { alarm.cancel(on: $0) }
        }
    }

    private func run(_ loop: HTTPLoop) {
        while true {
            var work: [Work] = []
            self.monitor.lock()
            swap(&work, &self.waiting)
            self.monitor.unlock()
            for work in work { work.run(loop) }
            loop.turn()
        }
    }
}

/// An object that is used only on an `HTTPThread`.
package protocol HTTPAgent: AnyObject {
    /// Handles an event of a request that was started for this agent.
    func received(_ event: HTTPEvent, on loop: HTTPLoop)

    /// Called when the agent's time has come or a descriptor that it watches is ready.
    func momentReached(on loop: HTTPLoop)
}

/// The part of an `HTTPThread` that runs on the thread. It starts requests, passes events to agents, and runs timers.
package final class HTTPLoop {
    /// The maximum wait in milliseconds. The exact value does not matter.
    private static let waitMax: Int64 = 60_000

    private let client: HTTPClient
    private var owners: [HTTPRequestID: any HTTPAgent] = [:]
    private var moments = MomentHeap<ObjectIdentifier>()
    private var sleepers: [ObjectIdentifier: any HTTPAgent] = [:]
    private var watchers: [ObjectIdentifier: (agent: any HTTPAgent, descriptors: [Descriptor.Wait])] = [:]

    init(_ client: HTTPClient) {
        self.client = client
    }

    /// The time since the start of the machine in milliseconds, including suspended time.
    package var now: Int64 { SystemClock.boot }

    /// Starts a request. The agent receives the events, and is retained until the request has ended.
    ///
    /// - Throws: `HTTPClientError` if the request cannot be sent.
    package func start(_ request: HTTPRequest, for agent: any HTTPAgent) throws(HTTPClientError) -> HTTPRequestID {
        let id = try self.client.start(request)
        self.owners[id] = agent
        return id
    }

    /// Continues to send a request's file; see `HTTPClient.supply`.
    package func supply(_ bytes: [UInt8], at offset: Int64, to id: HTTPRequestID) {
        self.client.supply(bytes, at: offset, to: id)
    }

    /// Ends a request without another event.
    package func cancel(_ id: HTTPRequestID) {
        self.owners[id] = nil
        self.client.cancel(id)
    }

    /// Sets the time of the next call of the agent; nil for none. The agent is retained until then.
    package func setMoment(_ moment: Int64?, for agent: any HTTPAgent) {
        let key = ObjectIdentifier(agent)
        self.moments.set(key, to: moment)
        self.sleepers[key] = moment == nil ? nil : agent
    }

    /// Sets the descriptors that an agent waits for. The agent is retained until both lists are empty.
    ///
    /// - Parameters:
    ///   - descriptors: the descriptors to watch for being readable.
    ///   - writable: the descriptors to watch for being writable.
    ///   - agent: the agent to call.
    package func watch(_ descriptors: [Int32], writable: [Int32] = [], for agent: any HTTPAgent) {
        let watched =
            descriptors.map { Descriptor.Wait($0, .readable) } + writable.map { Descriptor.Wait($0, .writable) }
        self.watchers[ObjectIdentifier(agent)] = watched.isEmpty ? nil : (agent, watched)
    }

    /// Calls the agents whose time has come, waits for the network, and passes events to agents.
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
        for (agent, var descriptors) in self.watchers.values where Descriptor.wait(for: &descriptors, milliseconds: 0) {
            agent.momentReached(on: self)
        }
    }
}

/// A request whose answer a task awaits.
///
/// `@unchecked Sendable`: used only on its `HTTPThread`.
final class HTTPExchange: HTTPAgent, @unchecked Sendable {
    private var continuation: CheckedContinuation<Result<HTTPResponse, HTTPClientError>, Never>?
    private var request: HTTPRequestID?
    private var isCancelled = false

    func begin(
        _ request: HTTPRequest,
        _ continuation: CheckedContinuation<Result<HTTPResponse, HTTPClientError>, Never>,
        on loop: HTTPLoop
    ) {
        self.continuation = continuation
        guard !self.isCancelled else { return self.end(Self.cancelled) }
        do throws(HTTPClientError) {
            self.request = try loop.start(request, for: self)
        } catch {
            self.end(.failure(error))
        }
    }

    func cancel(on loop: HTTPLoop) {
        self.isCancelled = true
        if let request = self.request { loop.cancel(request) }
        self.end(Self.cancelled)
    }

    func received(_ event: HTTPEvent, on loop: HTTPLoop) {
        if case .ended(_, let result) = event { self.end(result) }
    }

    func momentReached(on loop: HTTPLoop) {}

    private static let cancelled = Result<HTTPResponse, HTTPClientError>.failure(
        HTTPClientError(.cancelled, "the task that waited for the answer was cancelled")
    )

    private func end(_ result: Result<HTTPResponse, HTTPClientError>) {
        self.request = nil
        self.continuation?.resume(returning: result)
        self.continuation = nil
    }
}

/// A time that a task awaits.
///
/// `@unchecked Sendable`: used only on its `HTTPThread`.
final class HTTPAlarm: HTTPAgent, @unchecked Sendable {
    private var continuation: CheckedContinuation<Void, Never>?
    private var isCancelled = false

    func begin(_ milliseconds: Int64, _ continuation: CheckedContinuation<Void, Never>, on loop: HTTPLoop) {
        guard !self.isCancelled else { return continuation.resume() }
        self.continuation = continuation
        loop.setMoment(loop.now + max(0, milliseconds), for: self)
    }

    func cancel(on loop: HTTPLoop) {
        self.isCancelled = true
        loop.setMoment(nil, for: self)
        self.momentReached(on: loop)
    }

    func received(_ event: HTTPEvent, on loop: HTTPLoop) {}

    func momentReached(on loop: HTTPLoop) {
        self.continuation?.resume()
        self.continuation = nil
    }
}

extension HTTPClient {
    /// Sends `request` and waits for the complete answer. Discards the events of other requests, so use it only on
    /// clients with one request at a time.
    package func perform(_ request: HTTPRequest) throws(HTTPClientError) -> HTTPResponse {
        let id = try self.start(request)
        while true {
            for case .ended(id, let result) in self.poll(timeoutMilliseconds: 1000) { return try result.get() }
        }
    }
}

/// A queue of keys, each with one due time in milliseconds. All times are of the same clock.
package struct MomentHeap<Key: Hashable & Sendable>: Sendable {
    /// The queue. Entries that differ from `moments` are outdated and are skipped.
    private var queue = MomentQueue<Key>()
    private var moments: [Key: Int64] = [:]

    package init() {}

    /// The earliest time; nil if the queue is empty.
    package var first: Int64? {
        mutating get {
            while let first = self.queue.first, self.moments[first.value] != first.moment {
                _ = self.queue.popDue(first.moment)
            }
            return self.queue.first?.moment
        }
    }

    /// Changes the time of a key; nil removes the key.
    package mutating func set(_ key: Key, to moment: Int64?) {
        guard self.moments[key] != moment else { return }
        self.moments[key] = moment
        guard let moment else { return }
        // Keys whose times change often leave outdated entries.
        if self.queue.count > 2 * self.moments.count + 64 {
            self.queue = MomentQueue()
            for (key, moment) in self.moments { self.queue.insert(key, at: moment) }
        } else {
            self.queue.insert(key, at: moment)
        }
    }

    /// Removes and returns the earliest key that is due at `now`; nil if none is due.
    package mutating func popDue(_ now: Int64) -> Key? {
        guard self.first != nil, let due = self.queue.popDue(now) else { return nil }
        self.moments[due.value] = nil
        return due.value
    }
}

/// The delays between attempts. They grow with each failure, and vary at random so that many workers do not return at
/// the same time.
package struct Backoff: Sendable {
    private let firstMilliseconds: Int
    private let lastMilliseconds: Int
    private var failures = 0

    package init(firstMilliseconds: Int = 250, lastMilliseconds: Int = 15_000) {
        self.firstMilliseconds = firstMilliseconds
        self.lastMilliseconds = lastMilliseconds
    }

    /// Returns the delay after another failure, in milliseconds. It is between half of the current limit and the limit.
    package mutating func failed(using generator: inout some RandomNumberGenerator) -> Int {
        let bound = min(self.lastMilliseconds, self.firstMilliseconds << min(self.failures, 16))
        self.failures += 1
        return Int.random(in: (bound / 2)...bound, using: &generator)
    }

    /// Records a success. The delay after the next failure is the shortest again.
    package mutating func succeeded() {
        self.failures = 0
    }
}
