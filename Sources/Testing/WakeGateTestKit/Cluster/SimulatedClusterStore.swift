package import Engine

/// A gateway's connection to a `SimulatedDatabase`, with delays for requests and replies. Each reply calls `signal`.
///
/// A test can kill or pause the store like a process, and cut its connections. After a cut during a commit, the store
/// replies only when it has determined the result.
package final class SimulatedClusterStore: ClusterStore {
    /// A connection. At most one transaction uses it at a time.
    private struct Connection {
        var transaction: TransactionNumber?
        /// The virtual time at which the last request arrives at the database.
        var arrival: Int64 = 0
        /// The totals of the counters since the gateway was attached.
        var counts: [TopicIndex: ActivityCounters] = [:]
    }

    package let transactionsMax: Int
    private let database: SimulatedDatabase
    private let signal: @Sendable () -> Void
    private var replies: [ClusterReply] = []
    private var connections: [Connection]
    private var transactions: [TransactionNumber: DatabaseTransaction] = [:]
    /// The session; nil while the store believes that it is detached.
    private var session: DatabaseSession?
    /// The virtual times at which the last request outside of transactions arrives and, in `controlReply`, the last
    /// reply.
    private var controlArrival: Int64 = 0
    private var controlReply: Int64 = 0
    /// The replies that arrived while the process was paused.
    private var unheard: [() -> Void] = []
    /// All gateway numbers under which the store was attached.
    package private(set) var numbers: Set<GatewayNumber> = []
    package private(set) var isPaused = false
    /// The maximum number of claims that the engine had open at the same time.
    package private(set) var claimsAtOnceMax = 0
    /// The number of transactions that the engine has begun.
    package private(set) var loadCount = 0
    /// True if the process has ended.
    package private(set) var isDead = false

    /// Called with the maximum duration of each wait for replies, in milliseconds.
    package var onWait: (Int64) -> Void = { _ in }

    /// Creates a store and starts to attach it.
    package init(
        _ database: SimulatedDatabase,
        transactionsMax: Int = 4,
        signal: @escaping @Sendable () -> Void
    ) {
        self.database = database
        self.transactionsMax = transactionsMax
        self.signal = signal
        self.connections = Array(repeating: Connection(), count: transactionsMax)
        self.attachAgain()
        database.settle()
    }

    /// The gateway number under which the store believes that it is attached; nil if detached.
    package var number: GatewayNumber? { self.session?.number }

    /// The number of the engine's open transactions.
    package var openCount: Int { self.transactions.count }

    package func takeReplies(into replies: inout [ClusterReply]) {
        self.database.settle()
        replies += self.replies
        self.replies.removeAll()
    }

    package func submit(_ request: ClusterRequest) {
        guard !self.isDead else { return }
        switch request {
        case .load(let number, let plan):
            self.loadCount += 1
            self.load(number, plan)
        case .commit(let number, let writes): self.commit(number, writes)
        case .abandon(let number): self.abandon(number)
        case .count(let number, let topics):
            self.ask(number) { .counts(number, $0.rows.total(of: topics)) }
        case .read(let number, let plan): self.ask(number) { .loaded(number, $0.read(plan)) }
        case .addTopics(let names): self.control { $0.addTopics(names, by: $1) }
        case .report(let report): self.control { $0.report(report, of: $1) }
        case .sendNotices(let notices): self.control { $0.tell(notices, by: $1) }
        case .storeValue(let name, let content): self.control { $0.storeValue(name, content, by: $1) }
        case .retire(let number): self.control { $0.retire(number, by: $1) }
        }
        self.database.settle()
    }

    package func waitForReplies(milliseconds: Int64) { self.onWait(milliseconds) }

    package func stop() {
        self.kill(withMachine: false)
        self.database.settle()
    }
}

// MARK: - Actions of tests

extension SimulatedClusterStore {
    /// Ends the process.
    ///
    /// - `withMachine`: true if the machine dies, too. The database then notices only that messages stop.
    package func kill(withMachine: Bool) {
        guard !self.isDead else { return }
        self.isDead = true
        self.replies.removeAll()
        self.unheard.removeAll()
        guard !withMachine else { return }
        let (session, open) = (self.session, self.transactions.sorted { $0.key.rawValue < $1.key.rawValue })
        self.database.plan(after: self.database.draw(self.database.pace.delay)) {
            session?.isConnected = false
            for (_, transaction) in open { self.hangUp(transaction) }
        }
        self.database.settle()
    }

    /// Pauses the process, which receives nothing until `resume`. The test must not step its engine before that.
    package func pause() { self.isPaused = true }

    package func resume() {
        self.isPaused = false
        let unheard = self.unheard
        self.unheard.removeAll()
        for event in unheard { self.hear(event) }
        self.signal()
    }

    /// Cuts every connection.
    package func cutAll() {
        guard let session = self.session, session.isConnected else { return }
        self.database.log.note(.controlCut)
        self.database.plan(after: self.database.draw(self.database.pace.delay)) {
            self.database.disconnect(session, "The connection was cut.")
        }
    }

    /// Cuts the connection of one open transaction, if there is one.
    package func cutOne() {
        let open = self.transactions.values.filter { !$0.isCut }.sorted { $0.number.rawValue < $1.number.rawValue }
        guard !open.isEmpty else { return }
        self.cut(open[self.database.draw(0...open.count - 1)])
    }
}

// MARK: - Transactions

extension SimulatedClusterStore {
    private func load(_ number: TransactionNumber, _ plan: LoadPlan) {
        guard let session = self.session else {
            return self.deliver(.failed(number, SimulatedDatabase.refusal("The database is not there.")))
        }
        guard self.transactions[number] == nil,
            let connection = self.connections.firstIndex(where: { $0.transaction == nil })
        else {
            self.database.log.misuses.append("there are more than \(self.transactionsMax) transactions, or one twice")
            return self.deliver(.failed(number, .conflict))
        }
        self.connections[connection].transaction = number
        let transaction = DatabaseTransaction(number, plan, of: self, session.number, connection: connection)
        self.transactions[number] = transaction
        self.claimsAtOnceMax = max(self.claimsAtOnceMax, self.transactions.values.count { $0.plan.selection.isClaim })
        if self.database.happens(onceIn: self.database.faults.lostLoads) {
            self.database.log.note(.lostLoad)
            self.cut(transaction)
        } else {
            self.send(transaction) { $0.load(transaction) }
        }
    }

    private func commit(_ number: TransactionNumber, _ writes: ClusterWrites) {
        guard let transaction = self.transactions[number], transaction.wait == .nothing else {
            self.database.log.misuses.append("a transaction is committed that has read nothing")
            return self.deliver(.failed(number, .conflict))
        }
        transaction.wait = .end
        guard !transaction.isCut else {
            return self.later(self.database.pace.reconnection) {
                self.finish(transaction, .failed(self.database.anyFailure("The connection was cut.")))
            }
        }
        var counts: [TopicIndex: ActivityCounters] = [:]
        for (topic, added) in writes.counts {
            counts[topic] =
                counts[topic] ?? self.connections[transaction.connection].counts[topic] ?? ActivityCounters()
            counts[topic]? += added
        }
        let commit = DatabaseCommit(
            gateway: transaction.gateway,
            connection: transaction.connection,
            moment: transaction.moment,
            writes: writes,
            counts: counts
        )
        transaction.counts = counts
        let isLost = self.database.happens(onceIn: self.database.faults.lostCommits)
        if !isLost || self.database.draw(0...1) == 0 { self.send(transaction) { $0.commit(transaction, commit) } }
        guard isLost else { return }
        self.database.log.note(.lostCommit)
        self.cut(transaction)
    }

    private func abandon(_ number: TransactionNumber) {
        guard let transaction = self.transactions[number] else { return }
        if transaction.wait == .end { self.database.log.misuses.append("a commit is abandoned") }
        transaction.isAbandoned = true
        self.send(transaction) { $0.rollBack(transaction) }
        self.close(transaction)
    }

    private func send(_ transaction: DatabaseTransaction, _ request: @escaping (SimulatedDatabase) -> Void) {
        let database = self.database
        let place = transaction.connection
        let arrival = max(self.connections[place].arrival, database.now + Int64(database.draw(database.pace.delay)))
        self.connections[place].arrival = arrival
        database.plan(at: arrival) { request(database) }
    }

    /// Frees the connection of a transaction that is finished for the engine.
    private func close(_ transaction: DatabaseTransaction) {
        self.transactions[transaction.number] = nil
        self.connections[transaction.connection].transaction = nil
    }

    /// Sends the rows to the client.
    func rows(_ loaded: LoadedDevices, of transaction: DatabaseTransaction) {
        self.later {
            guard !transaction.isCut, !transaction.isAbandoned else { return }
            transaction.wait = .nothing
            self.deliver(.loaded(transaction.number, loaded))
        }
    }

    /// Sends the end of a transaction to the client.
    func ended(_ transaction: DatabaseTransaction, _ end: DatabaseEnd) {
        if transaction.isInDoubt { return self.resolved(transaction, end) }
        guard !transaction.isCut else { return }
        if transaction.wait == .end, self.database.happens(onceIn: self.database.faults.lostReplies) {
            self.database.log.note(.lostReply)
            return self.later { self.cut(transaction) }
        }
        self.later {
            guard !transaction.isCut else { return }
            self.finish(transaction, end)
        }
    }

    /// Sends the result of a commit whose connection was cut.
    func resolved(_ transaction: DatabaseTransaction, _ end: DatabaseEnd) {
        self.later { self.finish(transaction, end) }
    }

    private func finish(_ transaction: DatabaseTransaction, _ end: DatabaseEnd) {
        guard self.transactions[transaction.number] === transaction else { return }
        self.close(transaction)
        switch end {
        case .failed(let failure): self.deliver(.failed(transaction.number, failure))
        case .committed:
            guard case .committed(let endedElsewhere) = transaction.state else {
                preconditionFailure("what is said to be committed is")
            }
            self.connections[transaction.connection].counts.merge(transaction.counts) { _, new in new }
            self.deliver(.committed(transaction.number, endedElsewhere: endedElsewhere))
        }
    }

    /// Cuts a transaction's connection.
    private func cut(_ transaction: DatabaseTransaction) {
        guard !transaction.isCut, self.transactions[transaction.number] === transaction else { return }
        transaction.isCut = true
        switch transaction.wait {
        case .rows:
            self.database.plan(after: self.database.draw(self.database.pace.delay)) { self.hangUp(transaction) }
            self.later(self.database.pace.reconnection) {
                self.finish(transaction, .failed(self.database.anyFailure("The connection was cut.")))
            }
        case .nothing:
            self.database.plan(after: self.database.draw(self.database.pace.delay)) { self.hangUp(transaction) }
        case .end:
            self.later(self.database.pace.reconnection) { self.database.resolve(transaction) }
        }
    }

    /// Handles at the server that a transaction's client is lost. A commit that has arrived continues.
    private func hangUp(_ transaction: DatabaseTransaction) {
        switch transaction.state {
        case .loading, .open: self.database.rollBack(transaction)
        case .inserting, .replicating, .committed, .rolledBack: break
        }
    }
}

// MARK: - Other requests

extension SimulatedClusterStore {
    /// Attaches under a new number after all commits under the old number have ended.
    func attachAgain() {
        guard !self.isDead else { return }
        self.later(self.database.pace.reconnection) {
            guard !self.transactions.values.contains(where: { $0.wait == .end }) else { return self.attachAgain() }
            self.database.plan(after: self.database.draw(self.database.pace.delay)) {
                guard !self.isDead else { return }
                self.database.attach(self)
            }
        }
    }

    func attached(_ attachment: Attachment, _ session: DatabaseSession) {
        self.laterInOrder {
            self.session = session
            self.numbers.insert(attachment.number)
            for place in self.connections.indices { self.connections[place].counts = [:] }
            self.deliver(.attached(attachment))
        }
    }

    /// Ends the session. The gateway may learn this long after other gateways.
    func disconnected(_ session: DatabaseSession, _ error: StoreError) {
        let pace = self.database.pace
        self.laterInOrder(self.database.draw(0...1) == 0 ? pace.delay : pace.reconnection) {
            guard self.session === session else { return }
            self.session = nil
            self.deliver(.detached(error))
            for transaction in self.transactions.values.sorted(by: { $0.number.rawValue < $1.number.rawValue }) {
                self.cut(transaction)
            }
            self.attachAgain()
        }
    }

    /// Sends a request outside of a transaction. Such requests arrive in order.
    private func control(_ request: @escaping (SimulatedDatabase, DatabaseSession) -> Void) {
        guard let session = self.session else { return }
        let database = self.database
        self.controlArrival = max(self.controlArrival, database.now + Int64(database.draw(database.pace.delay)))
        database.plan(at: self.controlArrival) { request(database, session) }
    }

    /// Sends a reply outside of a transaction. Such replies arrive in order.
    func reply(_ reply: ClusterReply, to session: DatabaseSession) {
        self.laterInOrder { if self.session === session { self.deliver(reply) } }
    }

    /// Sends a notice. It may arrive before earlier notices.
    func notified(_ notice: ClusterNotice, _ session: DatabaseSession) {
        self.later { if self.session === session { self.deliver(.notified(notice)) } }
    }

    /// Sends a query over a separate connection. Transactions and locks do not delay its answer.
    private func ask(_ number: TransactionNumber, _ answer: @escaping (SimulatedDatabase) -> ClusterReply) {
        guard self.session != nil else {
            return self.deliver(.failed(number, SimulatedDatabase.refusal("The database is not there.")))
        }
        let database = self.database
        database.plan(after: database.draw(database.pace.delay)) {
            let reply: ClusterReply =
                database.isDown
                ? .failed(number, SimulatedDatabase.refusal("The primary is gone.")) : answer(database)
            self.later { self.deliver(reply) }
        }
    }

    // MARK: Time

    private func later(_ event: @escaping () -> Void) { self.later(self.database.pace.delay, event) }

    private func later(_ milliseconds: ClosedRange<Int>, _ event: @escaping () -> Void) {
        self.database.plan(after: self.database.draw(milliseconds)) { self.hear(event) }
    }

    private func laterInOrder(_ event: @escaping () -> Void) { self.laterInOrder(self.database.pace.delay, event) }

    private func laterInOrder(_ milliseconds: ClosedRange<Int>, _ event: @escaping () -> Void) {
        let database = self.database
        self.controlReply = max(self.controlReply, database.now + Int64(database.draw(milliseconds)))
        database.plan(at: self.controlReply) { self.hear(event) }
    }

    /// Delivers an event to the process, or stores it while the process is paused.
    private func hear(_ event: @escaping () -> Void) {
        guard !self.isDead else { return }
        guard !self.isPaused else { return self.unheard.append(event) }
        event()
    }

    private func deliver(_ reply: ClusterReply) {
        self.replies.append(reply)
        self.signal()
    }
}

extension LoadPlan.Selection {
    fileprivate var isClaim: Bool { if case .ready = self { true } else { false } }
}
