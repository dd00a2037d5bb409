import Engine
import Platform
import Policy

/// The store's thread, which serves all connections.
final class StoreThread {
    private let exchange: StoreExchange
    private let state: StoreState
    private let control: ControlLink
    private let shared: SharedLink
    private let links: [CommitLink]
    private let questions: QuestionLink
    /// All connections.
    private let everyLink: [any StoreLink]
    private var waiting: [CommitLink.Job] = []
    /// The attachment to report to the engine once every connection is ready.
    private var attachment: Attachment?
    /// The time by which every connection must be ready.
    private var attachDeadline: Int64 = 0
    private var failure = StoreError.unknown
    /// The cause last reported to the engine; nil while the store is attached or before it was first attached.
    private var reported: String?
    /// The time by which the thread must end; nil while it is not stopping.
    private var stopDeadline: Int64?
    private var isLeaving = false
    private var isOver = false

    init(_ settings: StoreSettings, _ exchange: StoreExchange) {
        let state = StoreState(settings)
        self.exchange = exchange
        self.state = state
        self.control = ControlLink(state)
        self.shared = SharedLink(state, self.control)
        self.links = (1...max(1, settings.connections)).map { CommitLink(index: Int16($0), state) }
        self.questions = QuestionLink(state)
        self.everyLink = [self.control, self.shared] + self.links + [self.questions]
    }

    func run() {
        while !self.isOver {
            for request in self.exchange.takeRequests() { self.take(request) }
            self.timePassed(SystemClock.monotonic)
            self.handleEvents()
            self.dispatch()
            self.deliver()
            guard !self.isOver else { break }
            self.wait()
            for link in self.everyLink { link.advance() }
            self.handleEvents()
        }
        self.control.close()
        self.shared.close()
        for link in self.links { link.close() }
        self.questions.close(self.failure)
    }

    private func wait() {
        var waits = [Descriptor.Wait(self.exchange.descriptor, .readable)]
        for link in self.everyLink { waits += link.waits }
        let now = SystemClock.monotonic
        var moments = self.everyLink.compactMap { $0.nextMoment } + [now + StoreSettings.heartbeatMilliseconds]
        if let deadline = self.stopDeadline { moments.append(min(deadline, now + 50)) }
        let pause = (moments.min() ?? now) - now
        Descriptor.wait(for: &waits, milliseconds: Int32(clamping: max(0, pause)))
        if waits[0].isOver { self.exchange.silence() }
    }

    // MARK: Requests

    private func take(_ request: ClusterRequest) {
        switch request {
        case .load(let number, let plan): if self.accepts(number) { self.waiting.append(.load(number, plan)) }
        case .count(let number, let topics): if self.accepts(number) { self.questions.ask(number, .count(topics)) }
        case .read(let number, let plan): if self.accepts(number) { self.questions.ask(number, .read(plan)) }
        case .commit(let number, let writes): self.links.first { $0.open == number }?.commit(writes)
        case .abandon(let number): self.links.first { $0.open == number }?.abandon()
        case .addTopics(let names): if self.state.isAttached { self.shared.addTopics(names) }
        case .report(let report): if self.state.isAttached { self.control.report(report) }
        case .sendNotices(let notices): if self.state.isAttached { self.shared.tell(notices) }
        case .storeValue(let name, let content): if self.state.isAttached { self.shared.storeValue(name, content) }
        case .retire(let gateway): if self.state.isAttached { self.waiting.append(.retire(gateway)) }
        }
    }

    /// Fails a transaction and returns false if the store is detached or stops.
    private func accepts(_ number: TransactionNumber) -> Bool {
        let isAccepted = self.state.isAttached && self.stopDeadline == nil
        if !isAccepted { self.state.fail(number, .refused(self.failure)) }
        return isAccepted
    }

    private func dispatch() {
        guard !self.waiting.isEmpty else { return }
        var taken = 0
        for link in self.links where taken < self.waiting.count && link.isIdle {
            link.begin(self.waiting[taken])
            taken += 1
        }
        self.waiting.removeFirst(taken)
        if !self.waiting.isEmpty, self.links.allSatisfy(\.isClosed) {
            self.refuseWaiting(self.links.compactMap(\.failure).first ?? self.failure)
        }
    }

    private func refuseWaiting(_ error: StoreError) {
        for job in self.waiting {
            switch job {
            case .load(let number, _): self.state.fail(number, .refused(error))
            case .retire: ()
            }
        }
        self.waiting = []
    }

    private func deliver() {
        guard !self.state.replies.isEmpty else { return }
        self.exchange.deliver(&self.state.replies)
    }

    // MARK: Time

    private func timePassed(_ now: Int64) {
        if self.exchange.isStopping, self.stopDeadline == nil { self.stop(now) }
        for link in self.everyLink { link.timePassed(now) }
        self.giveUpAttaching(now)
        self.stopGoesOn(now)
    }

    /// Detaches the store if connections cannot be made in time.
    private func giveUpAttaching(_ now: Int64) {
        guard self.attachment != nil, now >= self.attachDeadline,
            let failure = self.links.compactMap(\.failure).first
        else { return }
        self.detach(failure)
    }

    private func stop(_ now: Int64) {
        self.stopDeadline = now + self.state.settings.silenceMilliseconds
        self.state.isStopping = true
        self.refuseWaiting(self.failure)
        self.questions.close(self.failure)
        for link in self.links { link.abandon() }
    }

    private func stopGoesOn(_ now: Int64) {
        guard let deadline = self.stopDeadline else { return }
        if now >= deadline { self.isOver = true }
        guard !self.isLeaving, !self.links.contains(where: \.isCommitting) else { return }
        self.isLeaving = true
        for link in self.links { link.close() }
        self.control.leave()
    }

    // MARK: Events

    private func handleEvents() {
        for event in self.control.takeEvents() {
            switch event {
            case .entered(let attachment):
                self.state.number = attachment.number
                self.attachment = attachment
                self.attachDeadline = SystemClock.monotonic + StoreSettings.readyMilliseconds
            case .ended(let error): self.detach(error)
            case .left: self.isOver = true
            }
        }
        for warning in self.state.warnings { self.exchange.warn(warning) }
        self.state.warnings = []
        if let fault = self.state.fault {
            self.state.fault = nil
            self.detach(fault)
        }
        for link in self.links { link.closeIfDetached() }
        if let attachment = self.attachment, self.links.allSatisfy(\.isIdle) { self.attached(attachment) }
    }

    private func attached(_ attachment: Attachment) {
        var attachment = attachment
        (attachment.topics, attachment.values) = (self.control.topics, self.control.contents)
        self.attachment = nil
        self.reported = nil
        self.state.isAttached = true
        self.control.connection.resetPause()
        self.state.replies.append(.attached(attachment))
        self.exchange.attempted(nil)
    }

    private func detach(_ error: StoreError) {
        self.failure = error
        self.control.close()
        self.control.connection.pauseBeforeRetry()
        self.attachment = nil
        self.state.number = nil
        // Report the first cause and each different later cause.
        if self.state.isAttached || self.reported.map({ $0 != error.message }) ?? false {
            self.state.replies.append(.detached(error))
            self.reported = error.message
        }
        self.state.isAttached = false
        self.shared.detached()
        for link in self.links { link.detached(error) }
        self.questions.close(error)
        self.refuseWaiting(error)
        if self.stopDeadline != nil { self.isOver = true }
        self.exchange.attempted(error)
    }
}

/// The state that a store's connections share, used only by the store's thread.
final class StoreState {
    let settings: StoreSettings
    /// The replies to pass to the engine.
    var replies: [ClusterReply] = []
    var time = PolicyTime()
    /// The gateway's number, which all connections use; nil while there is none.
    var number: GatewayNumber?
    /// True if the store stops, so that no connection is opened again.
    var isStopping = false
    /// True if a connection that uses the number may be opened.
    var mayConnect: Bool { !self.isStopping && self.number != nil }
    /// True if the engine was notified that the store is attached.
    var isAttached = false
    /// The index of the server that connections try first: the control connection's server, or the next one after a
    /// failure.
    var firstHost = 0
    /// The reason why a connection has found the number invalid; nil if none has.
    var fault: StoreError?
    /// Database settings that the administrator should know, each described with its remedy.
    var warnings: [String] = []
    /// The number of transactions written so far.
    private var order: Int64 = 0

    init(_ settings: StoreSettings) {
        self.settings = settings
    }

    func nextOrder() -> Int64 {
        self.order += 1
        return self.order
    }

    func fail(_ number: TransactionNumber, _ failure: ClusterFailure) {
        self.replies.append(.failed(number, failure))
    }
}

/// Policy time as known to this gateway: the primary's clock plus a shift, which makes up for earlier primaries whose
/// clocks were ahead. It never decreases.
struct PolicyTime {
    /// The latest time returned, or read in a row.
    private(set) var last = Instant(milliseconds: 0)

    /// Returns the time of a transaction.
    ///
    /// - Parameters:
    ///   - wall: the primary's clock, read after the rows were locked.
    ///   - shift: the offset of policy time from the primary's clock, in milliseconds.
    ///   - rows: the latest time at which one of the rows was written.
    mutating func moment(wall: Int64, shift: Int64, rows: Int64) -> Instant {
        let now = max(wall + shift, self.last.milliseconds, rows)
        self.last = Instant(milliseconds: now)
        return self.last
    }

    /// Returns the wall clock at a policy time. The two times differ by exactly the shift.
    static func wall(_ moment: Instant, shift: Int64) -> Int64 { moment.milliseconds - shift }

    /// Makes every later time at least `moment`.
    mutating func reached(_ moment: Int64) {
        self.last = max(self.last, Instant(milliseconds: moment))
    }
}
