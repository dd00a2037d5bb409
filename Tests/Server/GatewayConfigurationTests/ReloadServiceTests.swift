import Foundation
import Gateway
import Policy
import ServiceManager
import Synchronization
import Testing
import WakeGateTestKit

@Suite("A reload inside", .timeLimit(.minutes(15)))
struct ReloadServiceTests {
    /// Keeps the log for a test that waits for lines.
    private final class Sink: LogSink, @unchecked Sendable {
        private let condition = NSCondition()
        private var taken: [LogLine] = []

        func write(_ line: LogLine, _: LogFormat) -> Bool {
            self.condition.withLock {
                self.taken.append(line)
                self.condition.broadcast()
                return true
            }
        }

        /// Waits for the next line about one of `events`, and takes it and all lines before it.
        func next(_ events: Set<GatewayEvent>) throws -> LogLine {
            try self.condition.withLock {
                let limit = Date(timeIntervalSinceNow: 60)
                while true {
                    if let place = self.taken.firstIndex(where: { events.contains($0.event) }) {
                        defer { self.taken.removeSubrange(...place) }
                        return self.taken[place]
                    }
                    try #require(self.condition.wait(until: limit), "no \(events) in \(self.taken.map(\.text))")
                }
            }
        }
    }

    /// The configuration that the next reload reads. It is not checked, because a file may disappear between check and
    /// use.
    private final class Source: Sendable {
        let configuration: Mutex<GatewayConfiguration>

        init(_ configuration: GatewayConfiguration) { self.configuration = Mutex(configuration) }
    }

    enum Gone: CaseIterable {
        case providerKeys, clientCA

        var key: String { self == .providerKeys ? "providerKeys" : "tls.clientCA" }
    }

    @Test("A file that disappeared after the check leaves everything unchanged", arguments: Gone.allCases)
    func rollback(gone: Gone) throws {
        let authority = try TestAuthority()
        var configuration = GatewayConfiguration()
        configuration.edge = .off
        configuration.admin = ListenSetting("127.0.0.1:0")
        configuration.store = .memory
        configuration.asksForTokens = false
        let keys = authority.folder.appendingPathComponent("keys")
        try FileManager.default.createDirectory(at: keys, withIntermediateDirectories: true)
        configuration.providerKeysFolder = keys.path
        configuration.clientCAFile = authority.certificate
        let source = Source(configuration)
        let sink = Sink()
        let log = GatewayLog(level: configuration.logLevel, format: configuration.logFormat, sink: sink)
        let gateway = try Gateway(
            configuration,
            source: ConfigurationSource(reloadsOnHangup: true) { source.configuration.withLock { $0 } },
            log: log,
            onIdle: {}
        )
        try gateway.start()
        defer { gateway.stop() }

        var faulty = configuration
        switch gone {
        case .providerKeys: faulty.providerKeysFolder = "/nonexistent"
        case .clientCA: faulty.clientCAFile = "/nonexistent"
        }
        try faulty.policy.set(.launchInterval, to: 5)
        faulty.drainTimeoutMilliseconds = 5
        faulty.logLevel = .error
        source.configuration.withLock { $0 = faulty }
        gateway.reload()
        #expect(try sink.next([.configurationFault, .reloaded]).fields["key"] == gone.key)
        #expect(try sink.next([.reloadRefused, .reloaded]).event == .reloadRefused)
        #expect(gateway.drainTimeoutMilliseconds == 10_000)

        // Reverting the configuration changes nothing.
        source.configuration.withLock { $0 = configuration }
        gateway.reload()
        let fields = ["changed": "0", "needsRestart": "0", "policyVersion": "1"]
        #expect(try sink.next([.reloaded, .reloadRefused]).fields == fields)
    }
}

@Suite("A reload in every state with every event", .timeLimit(.minutes(15)))
struct ReloadCourseTests {
    /// A state of reloads.
    enum Place: CaseIterable {
        case unattached
        case idle
        case reading
        /// The engine has received a configuration and not applied it.
        case settling
        /// In addition, another one is being read.
        case readingAgain
        case stopped
        /// The engine has received a configuration before.
        case stoppedWhileSettling

        var course: ReloadCourse {
            var course = ReloadCourse()
            for event in self.events { course.take(event) }
            return course
        }

        /// The events that lead to this state.
        private var events: [ReloadCourse.Event] {
            let begin: [ReloadCourse.Event] = [.attached, .asked(hasSource: true, isDraining: false)]
            return switch self {
            case .unattached: []
            case .idle: [.attached]
            case .reading: begin
            case .settling: begin + [.applied]
            case .readingAgain: begin + [.applied] + begin.dropFirst()
            case .stopped: [.attached, .stopped]
            case .stoppedWhileSettling: begin + [.applied, .stopped]
            }
        }
    }

    /// Every possible event.
    enum Event: CaseIterable {
        case attached, asked, askedWithoutSource, askedInShutdown, askedInShutdownWithoutSource
        case applied, refused, taken, stopped

        var event: ReloadCourse.Event {
            switch self {
            case .attached: .attached
            case .asked: .asked(hasSource: true, isDraining: false)
            case .askedWithoutSource: .asked(hasSource: false, isDraining: false)
            case .askedInShutdown: .asked(hasSource: true, isDraining: true)
            case .askedInShutdownWithoutSource: .asked(hasSource: false, isDraining: true)
            case .applied: .applied
            case .refused: .refused
            case .taken: .taken
            case .stopped: .stopped
            }
        }
    }

    /// The state after an event, and the next step.
    private struct Outcome: Equatable {
        let place: Place
        let step: ReloadCourse.Step?

        init(_ place: Place, _ step: ReloadCourse.Step? = nil) {
            self.place = place
            self.step = step
        }
    }

    private static let outcomes: [Place: [Event: Outcome]] = [
        .unattached: [
            .attached: Outcome(.idle), .asked: Outcome(.unattached, .sayShutdown),
            .askedWithoutSource: Outcome(.unattached, .sayShutdown),
            .askedInShutdown: Outcome(.unattached, .sayShutdown),
            .askedInShutdownWithoutSource: Outcome(.unattached, .sayShutdown), .applied: Outcome(.unattached),
            .refused: Outcome(.unattached), .taken: Outcome(.unattached), .stopped: Outcome(.stopped),
        ],
        .idle: [
            .attached: Outcome(.idle), .asked: Outcome(.reading, .begin),
            .askedWithoutSource: Outcome(.idle, .sayNothing), .askedInShutdown: Outcome(.idle, .sayShutdown),
            .askedInShutdownWithoutSource: Outcome(.idle, .sayShutdown), .applied: Outcome(.idle),
            .refused: Outcome(.idle), .taken: Outcome(.idle), .stopped: Outcome(.stopped),
        ],
        .reading: [
            .attached: Outcome(.reading), .asked: Outcome(.reading), .askedWithoutSource: Outcome(.reading),
            .askedInShutdown: Outcome(.reading), .askedInShutdownWithoutSource: Outcome(.reading),
            .applied: Outcome(.settling, .handOver), .refused: Outcome(.idle, .tellFaults),
            .taken: Outcome(.reading), .stopped: Outcome(.stopped),
        ],
        .settling: [
            .attached: Outcome(.settling), .asked: Outcome(.readingAgain, .begin),
            .askedWithoutSource: Outcome(.settling, .sayNothing), .askedInShutdown: Outcome(.settling, .sayShutdown),
            .askedInShutdownWithoutSource: Outcome(.settling, .sayShutdown), .applied: Outcome(.settling),
            .refused: Outcome(.settling), .taken: Outcome(.idle, .tellTaken),
            .stopped: Outcome(.stoppedWhileSettling),
        ],
        .readingAgain: [
            .attached: Outcome(.readingAgain), .asked: Outcome(.readingAgain),
            .askedWithoutSource: Outcome(.readingAgain), .askedInShutdown: Outcome(.readingAgain),
            .askedInShutdownWithoutSource: Outcome(.readingAgain), .refused: Outcome(.settling, .tellFaults),
            .taken: Outcome(.reading, .tellTaken), .stopped: Outcome(.stoppedWhileSettling),
        ],
        .stopped: [
            .attached: Outcome(.stopped), .asked: Outcome(.stopped, .sayShutdown),
            .askedWithoutSource: Outcome(.stopped, .sayShutdown), .askedInShutdown: Outcome(.stopped, .sayShutdown),
            .askedInShutdownWithoutSource: Outcome(.stopped, .sayShutdown), .applied: Outcome(.stopped),
            .refused: Outcome(.stopped), .taken: Outcome(.stopped), .stopped: Outcome(.stopped),
        ],
        .stoppedWhileSettling: [
            .attached: Outcome(.stoppedWhileSettling), .asked: Outcome(.stoppedWhileSettling, .sayShutdown),
            .askedWithoutSource: Outcome(.stoppedWhileSettling, .sayShutdown),
            .askedInShutdown: Outcome(.stoppedWhileSettling, .sayShutdown),
            .askedInShutdownWithoutSource: Outcome(.stoppedWhileSettling, .sayShutdown),
            .applied: Outcome(.stoppedWhileSettling), .refused: Outcome(.stoppedWhileSettling),
            .taken: Outcome(.stopped, .tellTaken), .stopped: Outcome(.stoppedWhileSettling),
        ],
    ]

    @Test("Every place is known by what happens in it, and none is left out")
    func places() {
        #expect(Set(Place.allCases.map(\.course)).count == Place.allCases.count)
        // A second configuration at the engine only changes a count, and has a separate test.
        let listed = Self.outcomes.values.reduce(0) { $0 + $1.count }
        #expect(listed == Place.allCases.count * Event.allCases.count - 1)
    }

    @Test("Each event in each state has the expected outcome", arguments: Place.allCases, Event.allCases)
    func events(place: Place, event: Event) throws {
        if (place, event) == (.readingAgain, .applied) { return }
        let expected = try #require(Self.outcomes[place]?[event])
        var course = place.course
        let step = course.take(event.event)
        #expect(step == expected.step && course == expected.place.course)
    }

    @Test("The engine accepts each configuration that was handed over, and each one is reported")
    func several() {
        var course = Place.readingAgain.course
        let handed = course.take(.applied)
        #expect(handed == .handOver && course.handedOver == 2 && course.phase == .idle)
        let steps = (0..<3).map { _ in course.take(.taken) }
        #expect(steps == [.tellTaken, .tellTaken, nil])
        #expect(course == Place.idle.course)
    }
}
