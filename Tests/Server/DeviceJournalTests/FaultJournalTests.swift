import Foundation
import Testing
import WakeGateTestKit

@Suite("The journal on a disk that fails", .timeLimit(.minutes(15)))
struct FaultJournalTests {
    struct Kind: CustomTestStringConvertible, Sendable {
        let fault: SimulatedDisk.Fault
        let isLasting: Bool
        let isOld: Bool

        var testDescription: String {
            "\(self.isLasting ? "lasting " : "")\(self.fault)\(self.isOld ? ", a file that was there" : "")"
        }

        /// What has to happen at least once, or the test has proven little.
        var outcomes: [FaultTrial.Count] {
            let ordinary: [FaultTrial.Count] = [.beginningFailed, .compacted, .checkpointed]
            return switch self.fault {
            case .noSpace: self.isOld ? [.compacted, .checkpointed] : ordinary + [.commitFailed]
            case .failedRead: ordinary + [.checkpointFailed] + (self.isOld ? [.openFailed, .loadFailed] : [])
            case .powerLoss: ordinary + [.commitFailed, .checkpointFailed]
            case .ioError, .failedSync, .kill:
                ordinary + [.commitFailed, .checkpointFailed, .lostUncertainBatch, .foundUncertainBatch]
            }
        }

        static let all = SimulatedDisk.Fault.allCases.flatMap { fault in
            [false, true].flatMap { isOld in
                // There is but one death.
                [false, true].filter { !$0 || (fault != .kill && fault != .powerLoss) }.map { isLasting in
                    Kind(fault: fault, isLasting: isLasting, isOld: isOld)
                }
            }
        }
    }

    /// More seeds than the one that `swift test` has time for, from the environment.
    private static let seeds = ProcessInfo.processInfo.environment["WAKEGATE_FAULT_SEEDS"].flatMap(Int.init) ?? 1

    @Test(
        "Whatever operation fails, commits that returned are found, and the failed one whole or not at all",
        arguments: Kind.all
    )
    func everyOperation(kind: Kind) {
        var counts: [FaultTrial.Count: Int] = [:]
        var wrongs: [String] = []
        var operations = 0
        for round in 0..<Self.seeds {
            for number in 0... {
                let seed = UInt64(round * 7919 + number % 17)
                var trial = FaultTrial(
                    kind.fault,
                    isLasting: kind.isLasting,
                    number: number,
                    seed: seed,
                    isOld: kind.isOld
                )
                trial.run()
                counts.merge(trial.counts, uniquingKeysWith: +)
                wrongs += trial.wrongs
                guard trial.metFault else { break }
                operations += 1
            }
        }
        #expect(wrongs.isEmpty, "\(wrongs.count): \(wrongs.prefix(3).joined(separator: "\n"))")
        // A disk without room only refuses what makes a file grow, and an old log has its room.
        #expect(operations > (kind.fault == .noSpace ? 1 : 10))
        let missing = kind.outcomes.filter { counts[$0] == nil }
        #expect(missing.isEmpty, "what never happened proves nothing")
    }

    @Test("A start after a failed sync may lose the power at any moment", arguments: [false, true])
    func startAfterFailedSync(isOld: Bool) {
        var wrongs: [String] = []
        var losses = 0
        for number in 0... {
            var metFault = false
            for second in 0... {
                // An exact disk, on which a sync that failed has written nothing.
                let seed = UInt64(number % 3) * 2
                var trial = FaultTrial(
                    .failedSync,
                    isLasting: false,
                    number: number,
                    seed: seed,
                    isOld: isOld,
                    secondLoss: second
                )
                trial.run()
                wrongs += trial.wrongs
                metFault = trial.metFault
                guard metFault, trial.metSecondLoss else { break }
                losses += 1
            }
            guard metFault else { break }
        }
        #expect(wrongs.isEmpty, "\(wrongs.count): \(wrongs.prefix(3).joined(separator: "\n"))")
        #expect(losses > 100)
    }
}
