package import Engine

/// A gateway's way to a `SimulatedDatabase`: what it asks travels there, and what comes back rings.
///
/// A test kills it, pauses it as a stopped process is paused, and cuts its connections. After a connection was cut with
/// a commit on its way, it finds out what has become of that before it says anything.
package final class SimulatedClusterStore: ClusterStore {
    /// A connection that transactions use, one at a time.
    private struct Connection {
        var transaction: TransactionNumber?
        /// When what was sent last arrives, in virtual time.
        var arrival: Int64 = 0
        /// What it has counted since the gateway was attached.
        var counts: [TopicIndex: Books] = [:]
    }

    package let transactionsMax: Int
    private let database: SimulatedDatabase
    private let ring: @Sendable () -> Void
    private var replies: [ClusterReply] = []
    private var connections: [Connection]
    private var transactions: [TransactionNumber: DatabaseTransaction] = [:]
    /// nil while it is not attached, as far as it knows.
    private var session: DatabaseSession?
    /// When what was sent last over the connection for everything else arrives, and what was sent back.
    private var controlArrival: Int64 = 0
    private var controlReply: Int64 = 0
    /// What has come while the process is stopped.
    private var unheard: [() -> Void] = []
    /// Every number it was attached under.
    package private(set) var numbers: Set<GatewayNumber> = []
    package private(set) var isPaused = false
    /// The most claims that its engine had open at a time.
    package private(set) var claimsAtOnceMax = 0
    /// The process is gone.
    package private(set) var isDead = false

    /// Tries to attach itself at once.
    package init(
        _ database: SimulatedDatabase,
        transactionsMax: Int = 4,
        ring: @escaping @Sendable () -> Void
    ) {
        self.database = database
        self.transactionsMax = transactionsMax
        self.ring = ring
        self.connections = Array(repeating: Connection(), count: transactionsMax)
        self.attachAgain()
        database.settle()
    }

    /// The number it is attached under, as far as it knows.
    package var number: GatewayNumber? { self.session?.number }

    /// How many transactions its engine has open.
    package var openCount: Int { self.transactions.count }

    package func takeReplies(into replies: inout [ClusterReply]) {
        self.database.settle()
        replies += self.replies
        self.replies.removeAll()
    }

    package func submit(_ request: ClusterRequest) {
        guard !self.isDead else { return }
        switch request {
        case .load(let number, let plan): self.load(number, plan)
        case .commit(let number, let writes): self.commit(number, writes)
        case .abandon(let number): self.abandon(number)
        case .count(let number, let topics):
            self.ask(number) { .counts(number, $0.rows.total(of: topics)) }
        case .read(let number, let plan): self.ask(number) { .loaded(number, $0.read(plan)) }
        case .addTopics(let names): self.control { $0.addTopics(names, by: $1) }
        case .report(let report): self.control { $0.report(report, of: $1) }
        case .tell(let notices): self.control { $0.tell(notices, by: $1) }
        case .keep(let name, let content): self.control { $0.keep(name, content, by: $1) }
        case .bury(let number): self.control { $0.bury(number, by: $1) }
        }
        self.database.settle()
    }

    package func stop() {
        self.kill(withMachine: false)
        self.database.settle()
    }
}

// MARK: - What a test does to it

extension SimulatedClusterStore {
    /// The process is gone.
    ///
    /// - `withMachine`: nobody tells the database, which finds out by hearing nothing.
    package func kill(withMachine: Bool) {
        guard !self.isDead else { return }
        self.isDead = true
        self.replies.removeAll()
        self.unheard.removeAll()
        guard !withMachine else { return }
        let (session, open) = (self.session, self.transactions.sorted { $0.key.rawValue < $1.key.rawValue })
        self.database.plan(after: self.database.draw(self.database.pace.way)) {
            session?.isConnected = false
            for (_, transaction) in open { self.hangUp(transaction) }
        }
        self.database.settle()
    }

    /// The process is stopped: nothing is heard until it goes on. Its engine must not be stepped meanwhile.
    package func pause() { self.isPaused = true }

    package func resume() {
        self.isPaused = false
        let unheard = self.unheard
        self.unheard.removeAll()
        for event in unheard { self.hear(event) }
        self.ring()
    }

    /// Every connection is cut.
    package func cutAll() {
        guard let session = self.session, session.isConnected else { return }
        self.database.log.note(.controlCut)
        self.database.plan(after: self.database.draw(self.database.pace.way)) {
            self.database.disconnect(session, "The connection was cut.")
        }
    }

    /// The connection of one open transaction is cut, if there is one.
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
        var counts: [TopicIndex: Books] = [:]
        for (topic, added) in writes.counts {
            counts[topic] = counts[topic] ?? self.connections[transaction.connection].counts[topic] ?? Books()
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
        let arrival = max(self.connections[place].arrival, database.now + Int64(database.draw(database.pace.way)))
        self.connections[place].arrival = arrival
        database.plan(at: arrival) { request(database) }
    }

    /// The engine is done with a transaction.
    private func close(_ transaction: DatabaseTransaction) {
        self.transactions[transaction.number] = nil
        self.connections[transaction.connection].transaction = nil
    }

    /// The rows are on their way.
    func rows(_ loaded: LoadedDevices, of transaction: DatabaseTransaction) {
        self.later {
            guard !transaction.isCut, !transaction.isAbandoned else { return }
            transaction.wait = .nothing
            self.deliver(.loaded(transaction.number, loaded))
        }
    }

    /// The end of a transaction is on its way.
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

    /// What has become of a commit, whose connection was cut, is on its way.
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

    /// A transaction's connection is gone.
    private func cut(_ transaction: DatabaseTransaction) {
        guard !transaction.isCut, self.transactions[transaction.number] === transaction else { return }
        transaction.isCut = true
        switch transaction.wait {
        case .rows:
            self.database.plan(after: self.database.draw(self.database.pace.way)) { self.hangUp(transaction) }
            self.later(self.database.pace.reconnection) {
                self.finish(transaction, .failed(self.database.anyFailure("The connection was cut.")))
            }
        case .nothing:
            self.database.plan(after: self.database.draw(self.database.pace.way)) { self.hangUp(transaction) }
        case .end:
            self.later(self.database.pace.reconnection) { self.database.resolve(transaction) }
        }
    }

    /// The server finds that the client of a transaction is gone; a commit that has arrived goes on.
    private func hangUp(_ transaction: DatabaseTransaction) {
        switch transaction.state {
        case .loading, .open: self.database.rollBack(transaction)
        case .inserting, .replicating, .committed, .rolledBack: break
        }
    }
}

// MARK: - Everything else

extension SimulatedClusterStore {
    /// Comes under a new number when what was under way under the old one has ended.
    func attachAgain() {
        guard !self.isDead else { return }
        self.later(self.database.pace.reconnection) {
            guard !self.transactions.values.contains(where: { $0.wait == .end }) else { return self.attachAgain() }
            self.database.plan(after: self.database.draw(self.database.pace.way)) {
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

    /// The session has ended; the gateway hears of it, at times long after others have.
    func disconnected(_ session: DatabaseSession, _ error: StoreError) {
        let pace = self.database.pace
        self.laterInOrder(self.database.draw(0...1) == 0 ? pace.way : pace.reconnection) {
            guard self.session === session else { return }
            self.session = nil
            self.deliver(.detached(error))
            for transaction in self.transactions.values.sorted(by: { $0.number.rawValue < $1.number.rawValue }) {
                self.cut(transaction)
            }
            self.attachAgain()
        }
    }

    /// A request over the connection for everything that is no transaction, where all stays in its order.
    private func control(_ request: @escaping (SimulatedDatabase, DatabaseSession) -> Void) {
        guard let session = self.session else { return }
        let database = self.database
        self.controlArrival = max(self.controlArrival, database.now + Int64(database.draw(database.pace.way)))
        database.plan(at: self.controlArrival) { request(database, session) }
    }

    /// A reply over that connection.
    func reply(_ reply: ClusterReply, to session: DatabaseSession) {
        self.laterInOrder { if self.session === session { self.deliver(reply) } }
    }

    /// A notice, which may overtake others.
    func told(_ notice: ClusterNotice, _ session: DatabaseSession) {
        self.later { if self.session === session { self.deliver(.told(notice)) } }
    }

    /// A question, over the connection for these: no transaction and no lock keeps it from its answer.
    private func ask(_ number: TransactionNumber, _ answer: @escaping (SimulatedDatabase) -> ClusterReply) {
        guard self.session != nil else {
            return self.deliver(.failed(number, SimulatedDatabase.refusal("The database is not there.")))
        }
        let database = self.database
        database.plan(after: database.draw(database.pace.way)) {
            let reply: ClusterReply =
                database.isDown
                ? .failed(number, SimulatedDatabase.refusal("The primary is gone.")) : answer(database)
            self.later { self.deliver(reply) }
        }
    }

    // MARK: Time

    private func later(_ event: @escaping () -> Void) { self.later(self.database.pace.way, event) }

    private func later(_ milliseconds: ClosedRange<Int>, _ event: @escaping () -> Void) {
        self.database.plan(after: self.database.draw(milliseconds)) { self.hear(event) }
    }

    private func laterInOrder(_ event: @escaping () -> Void) { self.laterInOrder(self.database.pace.way, event) }

    private func laterInOrder(_ milliseconds: ClosedRange<Int>, _ event: @escaping () -> Void) {
        let database = self.database
        self.controlReply = max(self.controlReply, database.now + Int64(database.draw(milliseconds)))
        database.plan(at: self.controlReply) { self.hear(event) }
    }

    /// What comes to the process waits while it is stopped.
    private func hear(_ event: @escaping () -> Void) {
        guard !self.isDead else { return }
        guard !self.isPaused else { return self.unheard.append(event) }
        event()
    }

    private func deliver(_ reply: ClusterReply) {
        self.replies.append(reply)
        self.ring()
    }
}

extension LoadPlan.Selection {
    fileprivate var isClaim: Bool { if case .ready = self { true } else { false } }
}
