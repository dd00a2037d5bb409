import Engine
import Policy
import Wire

/// The statements of a plan, and the decoding of their results.
struct LoadStep {
    /// The meaning of a statement's rows.
    private enum Part {
        case devices
        /// Selected rows. With `countMax` rows, the database may have more.
        case selected(countMax: Int)
        /// Rows selected from a slice of the devices, and the slice's end.
        case slice(countMax: Int)
        case heldWakes
        /// All requested devices, with the sessions that have locked them.
        case passedOver
        case clock
    }

    private var parts: [Part] = []
    /// The number of results before the results of the parts.
    private let skippedCount: Int
    /// True if the step does not wait for row locks.
    let passesOverLocked: Bool

    /// Sends the statements that lock and read rows.
    ///
    /// - `floor`: the latest policy time known to this gateway.
    init(_ plan: LoadPlan, floor: Instant, _ connection: StoreConnection<CommitStatement>) {
        self.skippedCount = 1
        self.passesOverLocked = plan.passesOverLocked
        connection.run(.begin)
        self.appendNamed(plan, connection)
        self.appendSelection(plan, floor, connection)
        connection.run(.clock)
        self.parts.append(.clock)
    }

    /// Sends the statements that read rows for a query.
    init(_ plan: ReadPlan, _ connection: StoreConnection<QuestionStatement>) {
        self.skippedCount = 0
        self.passesOverLocked = true
        self.appendNamed(plan, connection)
        self.appendSelection(plan, connection)
        connection.run(.clock)
        self.parts.append(.clock)
    }

    // MARK: Locking

    /// The maximum number of groups of ready rows that one load examines, for all names and patterns of its streams.
    /// `CommitStatement.ready` explains groups.
    private static let groupsMax = 256
    /// The minimum number of groups for each name or pattern, even if the total then exceeds `groupsMax`.
    private static let groupsOfRangeMin = 8

    private mutating func appendNamed(_ plan: LoadPlan, _ connection: StoreConnection<CommitStatement>) {
        guard !plan.tokens.isEmpty || !plan.wakes.isEmpty else { return }
        let tokens = PostgresList(plan.tokens)
        let wakes = PostgresList(plan.wakes)
        self.parts.append(.devices)
        if plan.passesOverLocked {
            connection.run(.lockFreeTokens, tokens, wakes)
            connection.run(.passedOver, tokens, wakes)
            self.parts.append(.passedOver)
        } else if plan.wakes.isEmpty {
            connection.run(.lockTokens, tokens)
        } else {
            connection.run(.lockTokensAndWakes, tokens, wakes)
        }
        guard plan.findsLostWakes else { return }
        connection.run(.lostWakes, tokens, wakes)
        self.parts.append(.heldWakes)
    }

    private mutating func appendSelection(
        _ plan: LoadPlan,
        _ floor: Instant,
        _ connection: StoreConnection<CommitStatement>
    ) {
        switch plan.selection {
        case .none: ()
        case .due(let countMax):
            connection.run(.lockDue, floor.milliseconds, Int32(clamping: countMax))
            self.parts.append(.selected(countMax: countMax))
        case .ready(let ready): self.append(ready, connection)
        case .wakes(let gateway, let countMax):
            let parameters = PostgresParameters(gateway.rawValue, Int32(clamping: countMax))
            connection.run(.lockHolder, parameters)
            self.parts.append(.selected(countMax: countMax))
            connection.run(.wakesOfHolder, parameters)
            self.parts.append(.heldWakes)
        }
    }

    private mutating func append(_ plan: ReadyPlan, _ connection: StoreConnection<CommitStatement>) {
        let (topic, countMax) = (Int32(bitPattern: plan.topic.rawValue), Int32(clamping: plan.countMax))
        self.parts.append(.selected(countMax: plan.countMax))
        if plan.takesPushes, plan.tasks.isEmpty, plan.sessions.isEmpty, plan.devices.isEmpty {
            return connection.run(.lockReadyPushes, topic, countMax)
        }
        let (tasks, sessions) = (NamePatterns(plan.tasks), NamePatterns(plan.sessions))
        var parameters = PostgresParameters(
            topic,
            plan.takesPushes,
            PostgresList(tasks.names),
            PostgresList(tasks.beginnings),
            PostgresList(sessions.names),
            PostgresList(sessions.beginnings),
            PostgresList(plan.resources),
            countMax
        )
        guard !plan.devices.isEmpty else {
            let ranges = 3 * plan.tasks.count + plan.sessions.count
            parameters.append(Int32(clamping: max(Self.groupsOfRangeMin, Self.groupsMax / max(1, ranges))))
            return connection.run(.lockReady, parameters)
        }
        parameters.append(PostgresList(plan.devices))
        connection.run(.lockReadyDevices, parameters)
    }

    // MARK: Reading

    private mutating func appendNamed(_ plan: ReadPlan, _ connection: StoreConnection<QuestionStatement>) {
        guard !plan.tokens.isEmpty || !plan.wakes.isEmpty else { return }
        connection.run(.readTokens, PostgresList(plan.tokens), PostgresList(plan.wakes))
        self.parts.append(.devices)
    }

    private mutating func appendSelection(_ plan: ReadPlan, _ connection: StoreConnection<QuestionStatement>) {
        func bytes(_ token: DeviceToken?) -> [UInt8] { token?.withBytes(\.array) ?? [] }
        var parameters = PostgresParameters()
        switch plan.selection {
        case .none: ()
        case .withTasks(let topic, let after, let countMax):
            parameters.append(topic.map { Int32(bitPattern: $0.rawValue) })
            parameters.append(bytes(after))
            parameters.append(Int32(clamping: countMax))
            connection.run(.readTasks, parameters)
            self.parts.append(.slice(countMax: countMax))
        case .inOrder(nil, let after, let countMax):
            connection.run(.readInOrder, bytes(after), Int32(clamping: countMax))
            self.parts.append(.selected(countMax: countMax))
        case .inOrder(let topics?, let after, let countMax):
            connection.run(.readTopicsInOrder, bytes(after), Int32(clamping: countMax), Self.list(topics))
            self.parts.append(.slice(countMax: countMax))
        case .pending(let topics, let after, let countMax):
            parameters.append(bytes(after))
            parameters.append(Int32(clamping: countMax))
            parameters.append(topics.map(Self.list))
            connection.run(.readPending, parameters)
            self.parts.append(.slice(countMax: countMax))
        }
    }

    private static func list(_ topics: [TopicIndex]) -> PostgresList<Int32> {
        PostgresList(topics.map { Int32(bitPattern: $0.rawValue) })
    }

    /// The rows that were read.
    struct Loaded {
        /// The rows, without the times.
        var rows = LoadedDevices(now: .distantPast, wall: 0, devices: [], hasMore: false)
        /// The versions of the rows, by token.
        var versions = RowVersions()
        /// The latest policy time at which one of the rows was written.
        var writtenAt: Int64 = 0
        var wall: Int64 = 0
        var shift: Int64 = 0

        /// Returns the rows with the time of the load.
        func dated(by time: inout PolicyTime) -> LoadedDevices {
            var rows = self.rows
            rows.now = time.moment(wall: self.wall, shift: self.shift, rows: self.writtenAt)
            rows.wall = PolicyTime.wall(rows.now, shift: self.shift)
            return rows
        }
    }

    /// Decodes the results; nil if they do not match the statements.
    func read(_ results: [PostgresRows]) -> Loaded? {
        let results = results.dropFirst(self.skippedCount)
        guard results.count == self.parts.count else { return nil }
        var loaded = Loaded()
        for (part, rows) in zip(self.parts, results) {
            switch part {
            case .devices: Self.read(rows, isOfTokens: true, into: &loaded)
            case .selected(let countMax):
                Self.read(rows, isOfTokens: false, into: &loaded)
                loaded.rows.hasMore = rows.count >= countMax
            case .slice(let countMax):
                let last = rows.count - 1
                let hasEnd = last >= 0 && rows.isNull(last, 1)
                Self.read(rows, count: hasEnd ? last : rows.count, isOfTokens: false, into: &loaded)
                loaded.rows.hasMore = loaded.rows.devices.count >= countMax
                if hasEnd, !loaded.rows.hasMore { loaded.rows.sliceEnd = DeviceToken(bytes: rows.bytes(last, 0)) }
            case .heldWakes:
                for row in 0..<rows.count {
                    guard let wake = rows.wake(row, 0), let token = DeviceToken(bytes: rows.bytes(row, 1)) else {
                        continue
                    }
                    if loaded.versions.contains(token) {
                        loaded.rows.heldWakes.append(wake)
                    } else {
                        // Another session has locked the device.
                        loaded.rows.hasMore = true
                    }
                }
            case .passedOver:
                for row in 0..<rows.count {
                    guard let token = DeviceToken(bytes: rows.bytes(row, 0)), !loaded.versions.contains(token) else {
                        continue
                    }
                    loaded.rows.passedOver.append((token, rows.wake(row, 1), LockHolder(rows, row, 2)))
                }
            case .clock:
                guard rows.count == 1 else { return nil }
                loaded.wall = rows.int64(0, 0)
                loaded.shift = rows.int64(0, 1)
            }
        }
        return loaded
    }

    private static func read(_ rows: PostgresRows, count: Int? = nil, isOfTokens: Bool, into loaded: inout Loaded) {
        loaded.rows.devices.reserveCapacity(loaded.rows.devices.count + rows.count)
        loaded.versions.reserveCapacity(loaded.versions.count + rows.count)
        // A selection may return a row for each of a device's lanes.
        let isFirst = isOfTokens && loaded.versions.count == 0
        for row in 0..<(count ?? rows.count) {
            let version = RowVersion(number: rows.int64(row, 1), place: rows.place(row, 6))
            guard let token = DeviceToken(bytes: rows.bytes(row, 0)),
                loaded.versions.append(version, of: token, isKnownNew: isFirst)
            else { continue }
            loaded.writtenAt = max(loaded.writtenAt, rows.int64(row, 2))
            let device = SharedDevice(
                token: token,
                record: rows.bytes(row, 3).array,
                tasks: rows.bytes(row, 4).array,
                derived: rows.bytes(row, 5).array
            )
            loaded.rows.devices.append(device)
        }
    }
}

extension LockHolder {
    /// The maximum number of characters of an application's name.
    private static let applicationMax = 63

    /// Reads a session from the columns starting at `first`; nil if they are NULL. Any client may choose the
    /// application's name, so unexpected characters are replaced.
    init?(_ rows: PostgresRows, _ row: Int, _ first: Int) {
        let pid = rows.int32(row, first)
        guard pid != 0 else { return nil }
        let start = rows.int64(row, first + 2)
        let name = rows.text(row, first + 1).prefix(Self.applicationMax).map { character in
            character.isASCII && (character.isLetter || character.isNumber || " ._-/".contains(character))
                ? character : "?"
        }
        self.init(pid: pid, application: String(name), queryStart: start == 0 ? nil : start)
    }
}

/// Patterns separated into exact names and prefixes; a prefix matches only longer names.
private struct NamePatterns {
    var names: [String] = []
    var beginnings: [String] = []

    init(_ patterns: [String]) {
        for pattern in patterns {
            if pattern.hasSuffix(".*") {
                self.beginnings.append(String(pattern.dropLast()))
            } else {
                self.names.append(pattern)
            }
        }
    }
}

/// The versions of the rows that a transaction has read, by token.
///
/// Rows are normally written in the order in which they were read, so the next version is found without a hash lookup.
struct RowVersions {
    private var tokens: [DeviceToken] = []
    private var versions: [RowVersion] = []
    /// The index of each token, created when a lookup is needed.
    private var places: [DeviceToken: Int] = [:]
    /// The index after the version found last.
    private var next = 0

    var count: Int { self.tokens.count }

    mutating func reserveCapacity(_ count: Int) {
        self.tokens.reserveCapacity(count)
        self.versions.reserveCapacity(count)
    }

    /// - `isKnownNew`: true if this token was not appended before, because the versions are the first and are from one
    ///   statement with distinct tokens.
    /// - Returns: false if a version of this token was appended before.
    mutating func append(_ version: RowVersion, of token: DeviceToken, isKnownNew: Bool) -> Bool {
        if !isKnownNew {
            self.makePlaces()
            guard self.places[token] == nil else { return false }
            self.places[token] = self.tokens.count
        }
        self.tokens.append(token)
        self.versions.append(version)
        return true
    }

    /// Returns the version of a row; `none` if the row was not read.
    mutating func version(of token: DeviceToken) -> RowVersion {
        if self.next < self.tokens.count, self.tokens[self.next] == token {
            self.next += 1
            return self.versions[self.next - 1]
        }
        self.makePlaces()
        guard let place = self.places[token] else { return .none }
        self.next = place + 1
        return self.versions[place]
    }

    /// Returns true if a row of this token was read.
    mutating func contains(_ token: DeviceToken) -> Bool { self.version(of: token) != .none }

    private mutating func makePlaces() {
        guard self.places.count < self.tokens.count else { return }
        for place in self.places.count..<self.tokens.count { self.places[self.tokens[place]] = place }
    }
}

/// The version of a row that a transaction has read. A write fails if the row has another version.
struct RowVersion: Hashable {
    let number: Int64
    /// The location of the row. It does not change while the transaction has locked the row.
    let place: RowLocation

    /// The version for a row that was not read. No stored row has this version.
    static let none = RowVersion(number: -1, place: .nowhere)
}
