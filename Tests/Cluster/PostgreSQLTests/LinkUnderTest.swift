import Engine
import Platform
import PostgresStore
import Testing
import Wire

/// A link whose results the test waits for: the outcomes of its runs, in order.
final class LinkUnderTest {
    /// The outcome of one run of statements.
    struct Outcome {
        var results: [PostgresRows] = []
        var errors: [PostgresError] = []
        var abortedCount = 0
        /// True if the run was answered completely.
        var isSynced = false
    }

    /// The longest wait, in milliseconds. After it, the test assumes that the server has stopped responding.
    static let waitMax: Int64 = 60_000

    let link: PostgresLink

    init(
        _ address: PostgresAddress,
        settings: [PostgresSetting] = [],
        firstHost: Int = 0,
        hostMilliseconds: Int64 = 30_000
    ) {
        self.link = PostgresLink(
            address,
            application: "test",
            settings: settings,
            firstHost: firstHost,
            hostMilliseconds: hostMilliseconds
        )
        while let deadline = self.link.deadline {
            let readiness: Descriptor.Readiness = self.link.phase == .reading ? .readable : .writable
            let wait = Int32(max(0, deadline - SystemClock.monotonic))
            Descriptor.wait(for: self.link.descriptor, readiness, milliseconds: wait)
            self.link.advance()
        }
    }

    /// Creates a link and waits until it is connected.
    static func connected(_ text: String, settings: [PostgresSetting] = []) throws -> LinkUnderTest {
        let link = LinkUnderTest(try PostgresAddress(text), settings: settings)
        if let failure = link.link.failure { throw failure }
        #expect(link.link.phase == .ready)
        return link
    }

    /// Sends a run of statements.
    func send(_ body: (PostgresLink) -> Void) {
        body(self.link)
        self.link.sync()
        _ = self.link.flush()
    }

    /// Sends a run of statements and waits for its outcome.
    func run(_ body: (PostgresLink) -> Void) -> Outcome {
        self.send(body)
        return self.outcome()
    }

    /// Waits for the outcome of the next run, until it is answered or the connection is lost.
    func outcome() -> Outcome {
        var outcome = Outcome()
        let deadline = SystemClock.monotonic + Self.waitMax
        while SystemClock.monotonic < deadline {
            while let event = self.link.next() {
                switch event {
                case .rows(let rows): outcome.results.append(rows)
                case .failed(let error): outcome.errors.append(error)
                case .aborted: outcome.abortedCount += 1
                case .synced:
                    outcome.isSynced = true
                    return outcome
                }
            }
            if self.link.isLost { return outcome }
            self.wait()
        }
        Issue.record("no answer in time")
        return outcome
    }

    /// True if the server reports the connection as encrypted; nil if the connection is lost.
    var isEncrypted: Bool? {
        let outcome = self.run { $0.query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") }
        return outcome.results.first?.flag(0, 0)
    }

    /// Waits until the connection is lost.
    func waitForLoss() {
        let deadline = SystemClock.monotonic + Self.waitMax
        while !self.link.isLost, SystemClock.monotonic < deadline { self.wait() }
        #expect(self.link.isLost)
    }

    /// Waits until the link has received something, and handles it.
    func wait() {
        var waits = [Descriptor.Wait(self.link.descriptor, .readable)]
        if self.link.flush() == .someLeft { waits.append(Descriptor.Wait(self.link.descriptor, .writable)) }
        Descriptor.wait(for: &waits, milliseconds: 1_000)
        _ = self.link.consume()
        // The gateway's loop asks for notifications, too. Without a query in progress, libpq parses only then the
        // message in which the server says why it ends the session.
        while self.link.notification() != nil {}
    }
}

extension PostgresClient {
    /// Executes statements that are separated by semicolons.
    func run(_ statements: String) throws {
        for statement in statements.split(separator: ";") { try self.query(String(statement)) }
    }
}
