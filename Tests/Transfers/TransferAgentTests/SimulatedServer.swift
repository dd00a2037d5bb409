import Foundation
import Platform
import Synchronization
import TransferAgent
import WakeGateTestKit
import Wire

/// Simulates the servers for the attempts of a room: entities that change, lost connections, refusals, and ends. The
/// files are real, and so are the effects of a power loss on them.
struct SimulatedServer {
    /// An attempt that has begun to write.
    private struct Writing {
        let writing: StateFiles.Writing
        let content: [UInt8]
        var bytes: Int
    }

    private var writings: [Int: Writing] = [:]
    /// The number of times that the entity of a URL has changed.
    private var versions: [String: Int] = [:]
    /// The number of synced bytes of each file.
    private var syncedBytes: [String: Int] = [:]

    private static let chunkBytes = 700

    /// The size from the last path component of a URL.
    static func size(of url: String) -> Int { url.split(separator: "/").last.flatMap { Int($0) } ?? 0 }

    static func content(_ url: String, version: Int) -> [UInt8] {
        let seed = url.utf8.reduce(version &* 7919) { ($0 &* 31) &+ Int($1) }
        return (0..<self.size(of: url)).map { UInt8(truncatingIfNeeded: ($0 &* 131 &+ seed) >> ($0 % 3)) }
    }

    /// Returns true if these bytes are one of the entities that a URL has had.
    func isEntity(_ bytes: [UInt8], of url: String) -> Bool {
        (0...(self.versions[url] ?? 0)).contains { Self.content(url, version: $0) == bytes }
    }

    /// Handles that the process has ended, so that all writing stops.
    ///
    /// - `losesPower`: true if bytes that were not synced may be lost or be zeros.
    mutating func processEnded(
        losesPower: Bool,
        _ rig: AgentRig,
        using generator: inout SeededGenerator
    ) throws {
        self.writings.removeAll()
        guard losesPower else { return }
        for name in rig.fileNames() {
            let file = URL(fileURLWithPath: "\(rig.state)/files/\(name)")
            let synced = self.syncedBytes[name] ?? 0
            var bytes = Array(try Data(contentsOf: file))
            guard bytes.count > synced else { continue }
            if synced == 0, generator.once(in: 2) {
                try FileManager.default.removeItem(at: file)
            } else if generator.once(in: 2) {
                try Data(bytes[..<generator.number(in: synced...bytes.count)]).write(to: file)
            } else {
                for index in synced..<bytes.count { bytes[index] = 0 }
                try Data(bytes).write(to: file)
            }
        }
    }

    /// Advances an attempt by one random step.
    ///
    /// - `isReliable`: true if the attempt can only make progress.
    mutating func step(
        _ attempt: ScriptedAgentWorld.Attempt,
        isReliable: Bool,
        _ rig: AgentRig,
        using generator: inout SeededGenerator
    ) {
        switch attempt.plan.kind {
        case .upload: self.stepUpload(attempt, isReliable: isReliable, rig, using: &generator)
        case .download where self.writings[attempt.number] == nil:
            self.answer(attempt, isReliable: isReliable, rig, using: &generator)
        case .download: self.stepDownload(attempt, isReliable: isReliable, rig, using: &generator)
        }
    }

    private mutating func stepUpload(
        _ attempt: ScriptedAgentWorld.Attempt,
        isReliable: Bool,
        _ rig: AgentRig,
        using generator: inout SeededGenerator
    ) {
        if isReliable || generator.once(in: 3) {
            self.end(attempt, .succeeded(bytes: 10, status: 201, sha256: nil), rig)
        } else if generator.once(in: 3) {
            self.end(attempt, .failed(.status(503, retryAfterSeconds: 2), hasProgressed: false), rig)
        } else {
            attempt.gauge.bytes.store(5, ordering: .relaxed)
        }
    }

    /// Answers the attempt, or does not.
    private mutating func answer(
        _ attempt: ScriptedAgentWorld.Attempt,
        isReliable: Bool,
        _ rig: AgentRig,
        using generator: inout SeededGenerator
    ) {
        let url = attempt.plan.spec.url
        if !isReliable {
            if generator.once(in: 12) {
                return self.end(attempt, .failed(.connectionFailed("refused"), hasProgressed: false), rig)
            }
            if generator.once(in: 40) {
                return self.end(attempt, .failed(.status(404, retryAfterSeconds: nil), hasProgressed: false), rig)
            }
            if generator.once(in: 20) { self.versions[url, default: 0] += 1 }
        }
        let version = self.versions[url] ?? 0
        let (validator, content) = ("\"\(version)\"", Self.content(url, version: version))
        guard let files = rig.stateFiles else { return }
        if let writing = self.resumed(attempt, validator, files) {
            let bytes = Int(writing.offset)
            self.writings[attempt.number] = Writing(writing: writing, content: content, bytes: bytes)
            attempt.gauge.first.store(writing.offset, ordering: .relaxed)
            attempt.gauge.bytes.store(writing.offset, ordering: .relaxed)
        } else {
            guard let writing = try? files.create(attempt.plan.freshFile) else { return }
            self.writings[attempt.number] = Writing(writing: writing, content: content, bytes: 0)
            self.syncedBytes[writing.name] = 0
            let total = Int64(content.count)
            attempt.report(
                .began(
                    PartFile(file: writing.name, validator: validator, total: total, synced: 0, boot: files.boot)
                )
            )
        }
        attempt.gauge.status.store(200, ordering: .relaxed)
        attempt.gauge.total.store(Int64(content.count), ordering: .relaxed)
    }

    /// Reopens the partial file of an earlier attempt, if it belongs to the same entity.
    private func resumed(
        _ attempt: ScriptedAgentWorld.Attempt,
        _ validator: String,
        _ files: StateFiles
    ) -> StateFiles.Writing? {
        guard let part = attempt.plan.part, part.validator == validator else { return nil }
        return try? files.reopen(part)
    }

    private mutating func stepDownload(
        _ attempt: ScriptedAgentWorld.Attempt,
        isReliable: Bool,
        _ rig: AgentRig,
        using generator: inout SeededGenerator
    ) {
        guard var state = self.writings[attempt.number], let files = rig.stateFiles else { return }
        if !isReliable, generator.once(in: 10) {
            let hasProgressed = Int64(state.bytes) > attempt.plan.bytesBefore
            return self.end(attempt, .failed(.connectionFailed("cut"), hasProgressed: hasProgressed), rig)
        }
        if state.bytes < state.content.count {
            let chunk = Array(state.content[state.bytes..<min(state.content.count, state.bytes + Self.chunkBytes)])
            let isWritten = chunk.withByteView { (try? state.writing.write($0)) != nil }
            guard isWritten else { return }
            files.used(chunk.count)
            state.bytes += chunk.count
            attempt.gauge.bytes.store(Int64(state.bytes), ordering: .relaxed)
            if generator.once(in: 4) {
                self.syncedBytes[state.writing.name] = state.bytes
                attempt.report(.synced(file: state.writing.name, bytes: Int64(state.bytes)))
            }
            self.writings[attempt.number] = state
            return
        }
        self.syncedBytes[state.writing.name] = state.bytes
        switch files.finish(state.writing, bytes: Int64(state.bytes), sha256: attempt.plan.spec.sha256) {
        case .whole(let sum): self.end(attempt, .succeeded(bytes: Int64(state.bytes), status: 200, sha256: sum), rig)
        case .fault(let fault): self.end(attempt, .failed(fault, hasProgressed: false), rig)
        }
    }

    private mutating func end(_ attempt: ScriptedAgentWorld.Attempt, _ news: AttemptNews, _ rig: AgentRig) {
        self.writings[attempt.number] = nil
        attempt.report(news)
        rig.world.end(attempt.number)
    }
}
