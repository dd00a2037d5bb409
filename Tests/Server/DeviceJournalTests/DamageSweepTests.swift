import Engine
import Foundation
import Storage
import Testing
import WakeGateTestKit

@Suite("Whatever befalls one file of a journal, nothing is lost without a word", .timeLimit(.minutes(15)))
struct DamageSweepTests {
    /// A journal's files as a process left them, and what they hold.
    struct State {
        let files: [String: Data]
        /// The same files a few commits before.
        let older: [String: Data]
        let records: [RecordKey: [UInt8]]
    }

    /// A state that had checkpoints, with commits behind the last of them, all acknowledged.
    private static func state(seed: UInt64, isCheckpointed: Bool) throws -> State {
        var random = SeededGenerator(seed: seed)
        let folder = try JournalFolder()
        var limits = JournalLimits()
        limits.compactionFloorBytes = 0
        if isCheckpointed { limits.checkpointPages = 12 }
        let (journal, _) = try folder.open(limits: limits)
        var records: [RecordKey: [UInt8]] = [:]
        var older: [String: Data] = [:]
        for commit in 0..<16 {
            if commit == 12 { older = try folder.contents() }
            let batch = (0..<3).map { part in
                let value = [UInt8](repeating: UInt8(commit), count: random.number(in: 100...3000))
                return (RecordKey.device(part * 10 + random.number(below: 10)), value)
            }
            for (key, value) in batch { records[key] = value }
            try journal.commit(batch)
        }
        // While the journal is open, as a process that is killed leaves them.
        return State(files: try folder.contents(), older: older, records: records)
    }

    @Test(
        "A damaged start holds everything that was committed, or is refused by name and leaves the files as they were",
        arguments: [true, false]
    )
    func sweep(isCheckpointed: Bool) throws {
        let seed: UInt64 = isCheckpointed ? 1 : 2
        let state = try Self.state(seed: seed, isCheckpointed: isCheckpointed)
        let other = try Self.state(seed: seed + 100, isCheckpointed: !isCheckpointed)
        var random = SeededGenerator(seed: seed)
        var refused = 0
        var exact = 0
        for name in state.files.keys.sorted() {
            for damage in FileDamage.allCases {
                let said: Comment = "seed \(seed), checkpoints \(isCheckpointed): \(damage) of \(name)"
                let folder = try JournalFolder()
                try folder.write(state.files)
                try folder.make(damage, of: name, state, foreign: other.files[name], &random)
                let before = folder.held
                do {
                    let found = try folder.open().1
                    #expect(found == state.records, said)
                    exact += 1
                } catch let error as StoreError {
                    refused += 1
                    #expect(error.message.contains(folder.path), "\(said.rawValue): \(error.message)")
                    #expect(folder.held == before, "\(said.rawValue): \(error.message)")
                }
            }
        }
        #expect(refused > 30 && exact > 5, "\(refused) refused, \(exact) exact")
    }

    @Test("A journal and its log of an older moment, everything else as it is, are refused")
    func olderPair() throws {
        let state = try Self.state(seed: 5, isCheckpointed: true)
        let folder = try JournalFolder()
        try folder.write(state.files)
        try folder.write(state.older.filter { !$0.key.hasSuffix("-mark") })
        #expect(try #require(try folder.refusal()).contains(folder.path))
    }
}

extension JournalFolder {
    func write(_ files: [String: Data]) throws {
        for (name, content) in files { try content.write(to: URL(filePath: self.path(name))) }
    }

    fileprivate func make(
        _ damage: FileDamage,
        of name: String,
        _ state: DamageSweepTests.State,
        foreign: Data?,
        _ random: inout SeededGenerator
    ) throws {
        let path = self.path(name)
        let whole = state.files[name] ?? Data()
        let content = damage.applied(to: whole, older: state.older[name], foreign: foreign, &random)
        try FileManager.default.removeItem(atPath: path)
        switch damage {
        case .linkedToNothing:
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: self.path("nowhere"))
        case .folder: try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        default: try content?.write(to: URL(filePath: path))
        }
    }

    /// The names in the folder, with what those hold that are files.
    fileprivate var held: [String: Data?] {
        var held: [String: Data?] = [:]
        for name in self.names where !name.hasSuffix("-shm") {
            held[name] = .some(FileManager.default.contents(atPath: self.path(name)))
        }
        return held
    }
}
