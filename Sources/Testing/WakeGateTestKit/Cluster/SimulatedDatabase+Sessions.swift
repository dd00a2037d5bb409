import Engine

// MARK: - Sessions of gateways

extension SimulatedDatabase {
    /// Attaches a gateway under a new number.
    func attach(_ store: SimulatedClusterStore) {
        guard !self.isDown else { return store.attachAgain() }
        self.findDead()
        self.lastNumber += 1
        let number = GatewayNumber(rawValue: self.lastNumber)
        let session = DatabaseSession(number, of: store, since: self.wall, heardAt: self.now)
        session.topicCount = self.rows.topics.count
        session.values = self.rows.values.mapValues(\.version)
        self.sessions[number] = session
        self.log.note(.attached)
        self.listen(session)
        let attachment = Attachment(
            number: number,
            topics: self.rows.topics,
            values: self.rows.values.mapValues(\.content),
            now: self.policyNow,
            wall: self.wall
        )
        store.attached(attachment, session)
    }

    /// Ends the session if its gateway has sent nothing for too long.
    private func listen(_ session: DatabaseSession) {
        guard !self.isImmediate else { return }
        self.plan(after: Int(Self.silenceMax)) {
            guard session.isConnected, session.heardAt + Self.silenceMax <= self.now else { return }
            self.log.note(.timeout)
            self.disconnect(session, "The gateway was not heard of in time.")
        }
    }

    /// Ends a session, and notifies its gateway with a delay.
    func disconnect(_ session: DatabaseSession, _ reason: String) {
        guard session.isConnected else { return }
        session.isConnected = false
        session.store.disconnected(session, StoreError(message: reason))
    }

    /// Marks the gateways without a session as dead. A dead gateway cannot commit.
    ///
    /// A gateway with unreplicated commits is skipped until a later call.
    func findDead() {
        for number in self.sessions.keys.sorted() {
            guard let session = self.sessions[number], session.isAlive, !session.isConnected,
                !self.replicating.contains(where: { $0.gateway == number })
            else { continue }
            session.isAlive = false
            self.log.deaths[number] = self.now
            self.log.note(.death)
        }
    }
}

// MARK: - Requests of gateways

extension SimulatedDatabase {
    func report(_ report: GatewayReport, of session: DatabaseSession) {
        guard session.isConnected, !self.isDown else { return }
        session.heardAt = self.now
        session.report = (report, self.wall)
        self.listen(session)
        self.findDead()
        self.sendNews(to: session)
        session.store.reply(.view(self.view), to: session)
    }

    /// The current state of the cluster.
    private var view: ClusterView {
        let numbers = self.sessions.keys.sorted()
        let members = numbers.compactMap { number -> ClusterView.Member? in
            guard let session = self.sessions[number], session.isAlive, session.isConnected,
                let (report, moment) = session.report
            else { return nil }
            return ClusterView.Member(number: number, since: session.since, reportedAt: moment, report: report)
        }
        return ClusterView(
            now: self.policyNow,
            wall: self.wall,
            members: members,
            dead: numbers.filter { self.sessions[$0].map { !$0.isAlive && !$0.isRetired } ?? false },
            ready: self.rows.readyTopics,
            nextDue: self.rows.due.values.min(),
            deviceCount: self.rows.devices.count
        )
    }

    /// Sends a gateway the topics and values that it does not have yet.
    private func sendNews(to session: DatabaseSession) {
        if session.topicCount < self.rows.topics.count {
            session.topicCount = self.rows.topics.count
            session.store.reply(.topics(self.rows.topics), to: session)
        }
        for (name, value) in self.rows.values.sorted(by: { $0.key < $1.key })
        where session.values[name] != value.version {
            session.values[name] = value.version
            session.store.reply(.value(name: name, value.content), to: session)
        }
    }

    /// Sends new topics and values to all other gateways. A planned fault may drop the message to a gateway.
    private func sendNewsToOthers(than session: DatabaseSession) {
        for other in self.others(than: session) where !self.happens(onceIn: self.faults.lostNotices) {
            self.sendNews(to: other)
        }
    }

    private func others(than session: DatabaseSession) -> [DatabaseSession] {
        self.sessions.values.filter { $0 !== session && $0.isConnected }.sorted { $0.number < $1.number }
    }

    func tell(_ notices: [ClusterNotice], by session: DatabaseSession) {
        guard session.isConnected, !self.isDown else { return }
        for notice in notices {
            for other in self.others(than: session) {
                if self.happens(onceIn: self.faults.lostNotices) {
                    self.log.note(.lostNotice)
                    continue
                }
                self.log.note(.notice)
                other.store.notified(notice, other)
                guard self.happens(onceIn: self.faults.doubledNotices) else { continue }
                self.log.note(.doubledNotice)
                other.store.notified(notice, other)
            }
        }
    }

    func addTopics(_ names: [String], by session: DatabaseSession) {
        guard session.isConnected, !self.isDown else { return }
        guard !self.isFull else { return self.plan(after: 200) { self.addTopics(names, by: session) } }
        for name in names where !self.rows.topics.contains(name) { self.rows.topics.append(name) }
        session.topicCount = self.rows.topics.count
        session.store.reply(.topics(self.rows.topics), to: session)
        self.sendNewsToOthers(than: session)
    }

    func storeValue(_ name: String, _ content: [UInt8], by session: DatabaseSession) {
        guard session.isConnected, !self.isDown else { return }
        guard !self.isFull else { return self.plan(after: 200) { self.storeValue(name, content, by: session) } }
        let version = (self.rows.values[name]?.version ?? 0) + 1
        self.rows.values[name] = (content, version)
        session.values[name] = version
        session.store.reply(.value(name: name, content), to: session)
        self.sendNewsToOthers(than: session)
    }

    func retire(_ number: GatewayNumber, by session: DatabaseSession) {
        guard session.isConnected, !self.isDown, let dead = self.sessions[number], !dead.isRetired else { return }
        if dead.isAlive { self.log.misuses.append("a gateway is buried that lives") }
        if !self.rows.devices(heldBy: number).isEmpty {
            self.log.misuses.append("gateway \(number.rawValue) is buried with wakes in flight")
        }
        dead.isRetired = true
        self.rows.retire(number)
        self.log.note(.retirement)
    }
}
