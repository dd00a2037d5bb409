import Engine
import Platform
import PostgresStore
import Testing
import Wire

/// A link whose results the test waits for: the outcomes of its runs, in order.
final class LinkUnderTest {
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
        while let deadline = self.link.deadline { self.wait(atMost: deadline - SystemClock.monotonic) }
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
    }

    /// Sends a run of statements and waits for its outcome.
    func run(_ body: (PostgresLink) -> Void) -> PostgresOutcome {
        self.send(body)
        if let outcome = self.outcome() { return outcome }
        Issue.record("the run is not answered")
        return PostgresOutcome()
    }

    /// Waits for the outcome of the next run; nil if the connection is lost before.
    func outcome() -> PostgresOutcome? {
        let deadline = SystemClock.monotonic + Self.waitMax
        while SystemClock.monotonic < deadline {
            if let outcome = self.link.next() { return outcome }
            if self.link.isLost { return nil }
            self.wait()
        }
        Issue.record("no answer in time")
        return nil
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
    private func wait(atMost milliseconds: Int64 = 1_000) {
        var waits = self.link.waits
        Descriptor.wait(for: &waits, milliseconds: Int32(max(0, milliseconds)))
        self.link.advance()
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
