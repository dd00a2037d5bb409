import DeviceEngine
import Foundation
import LaunchPolicy
import Simulation
import Testing
import WakeGateTestKit

@Suite("The engine and the simulator agree", .timeLimit(.minutes(15)))
struct ConformanceTests {
    private static let folder = Checkout.root.appending(path: "Tests/Pure/SimulationTests/Vectors")

    private static let names: [String] = {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return files.filter { $0.hasSuffix(".trace.jsonl") }.sorted()
    }()

    @Test("There are worked examples to compare")
    func found() {
        #expect(Self.names.count >= 49)
    }

    @Test("Dispatcher and engine do with a trace what the simulator says, to the millisecond", arguments: names)
    func agrees(name: String) throws {
        let text = try String(contentsOf: Self.folder.appending(path: name), encoding: .utf8)
        let trace = text.split(separator: "\n").map(String.init)
        var expected: [String: [String]] = [:]
        var simulator = try Simulator()
        func note(_ line: OutcomeLine) {
            expected[line.device, default: []].append(Self.text(line))
        }
        for line in trace { try simulator.take(line, output: note) }
        let summary = simulator.finish(output: note)
        let driver = TraceDriver()
        for line in trace { try driver.take(line) }
        driver.finish()
        #expect(!expected.isEmpty)
        for (device, lines) in expected {
            #expect(driver.lines[device] == lines, "device \(device)")
        }
        #expect(Set(driver.lines.keys) == Set(expected.keys))
        let launches = expected.values.joined().count { $0.contains(" launch ") }
        #expect(driver.deliveryCount == launches)
        Self.compare(driver.books, summary)
    }

    private static func compare(_ books: Books, _ summary: Summary) {
        #expect(books.accepted == Int64(summary.accepted) && books.launched == Int64(summary.launched))
        #expect(books.completed == Int64(summary.completed) && books.coalesced == Int64(summary.coalesced))
        #expect(books.pending == Int64(summary.pending) && books.inFlight == Int64(summary.inFlight))
        for reason in DiscardReason.allCases {
            #expect(books.discarded[reason] == Int64(summary.discarded[reason] ?? 0))
        }
        for outcome in WakeOutcome.allCases {
            #expect(books.results[outcome] == Int64(summary.results[outcome] ?? 0))
        }
    }

    private static func text(_ line: OutcomeLine) -> String {
        let what =
            switch line.event {
            case .push(let disposition): "push \(disposition.rawValue)"
            case .launch(let coalesced, let attempt): "launch \(coalesced) \(attempt)"
            case .result(let outcome): "result \(outcome.rawValue)"
            case .discard(let reason): "discard \(reason.rawValue)"
            }
        return "\(line.moment.milliseconds) \(line.apnsID) \(what)"
    }
}
