import CommandLineTool
import HTTPClient
import WakeWorker
import Wire

/// The input of a worker: the stream of events, and the members of an event's data.
enum EventStreamTarget {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        let bytes = input.array
        let events = try self.events(bytes, pieceBytes: bytes.count, bytesMax: 1 << 20)
        let whole = events ?? []
        try promise(events != nil, "an event within the limit is refused")
        try promise(whole == self.expected(bytes), "the events are not those of the standard's rules")
        for pieceBytes in [1, 7] {
            let pieces = try self.events(bytes, pieceBytes: pieceBytes, bytesMax: 1 << 20)
            try promise(pieces == whole, "the events change when they come in pieces of \(pieceBytes)")
        }
        let short = try self.events(bytes, pieceBytes: 5, bytesMax: 24)
        if let short { try promise(short == whole, "the events change under a limit that they keep") }
        for event in whole {
            try self.checkMembers(event.data)
            if let wake = WakeMessage(event.data) {
                try self.checkTimes(wake)
                let variables = WakeNotification(wake).commandEnvironment
                try promise((7...9).contains(variables.count), "a wake has seven variables, and two of its trace")
            }
            try self.checkTask(event)
        }
    }

    /// Checks that a session can calculate with the times of a wake, for any state of its own clocks.
    private static func checkTimes(_ wake: WakeMessage) throws(BrokenPromise) {
        for wall in [Int64.min, -1, 0, 1_800_000_000_000, .max] {
            let timeLeft = wake.timeLeft(wallClock: wall)
            try promise(timeLeft.magnitude <= WakeMessage.timeLeftMax.magnitude, "a wake has \(timeLeft) ms left")
            for now: Int64 in [0, 100 * 365 * 86_400_000] {
                var machine = WakeStateMachine(deadline: now + timeLeft)
                machine.handlerStarted()
                machine.extended(to: now + timeLeft)
                var keepAlive = KeepAlive()
                keepAlive.begun(deadline: machine.deadline)
                keepAlive.unanswered(now: machine.deadline)
                let moments = [machine.nextMoment, keepAlive.nextMoment].compactMap(\.self)
                try promise(moments.count == 2, "a wake that runs has a moment at which something is done")
            }
        }
        let counts = [wake.priority, wake.attempt, wake.coalesced]
        try promise(counts.allSatisfy { (0...WakeMessage.countMax).contains($0) }, "counts are past their bound")
    }

    /// Checks that the numbers of a task's wake can be used in calculations, for any name of its event.
    private static func checkTask(_ event: ServerSentEvent) throws(BrokenPromise) {
        for name in ["expired", "conditions", event.name] { _ = StreamEvent(name: name, data: event.data) }
        guard case .task(let wake)? = WakeEvent(event.data) else { return }
        for wall in [Int64.min, 0, .max] {
            let timeLeft = wake.timeLeft(wallClock: wall)
            try promise(timeLeft.magnitude <= WakeMessage.timeLeftMax.magnitude, "a task has \(timeLeft) ms left")
        }
        var counts = [wake.attempt]
        if case .session(_, let count) = wake.work { counts.append(count) }
        try promise(counts.allSatisfy { (0...WakeMessage.countMax).contains($0) }, "counts are past their bound")
        let instants = [wake.submittedAt, wake.deadline]
        try promise(instants.allSatisfy { (0...WakeMessage.instantMax).contains($0) }, "moments are past their bound")
    }

    /// Returns the events of `bytes`, which arrive in pieces; nil if an event exceeds the limit.
    private static func events(
        _ bytes: [UInt8],
        pieceBytes: Int,
        bytesMax: Int
    ) throws(BrokenPromise) -> [ServerSentEvent]? {
        var parser = ServerSentEventParser(bytesMax: bytesMax)
        var events: [ServerSentEvent] = []
        for start in stride(from: 0, to: bytes.count, by: max(1, pieceBytes)) {
            let piece = bytes[start..<min(start + max(1, pieceBytes), bytes.count)]
            guard let ended = try? parser.received(piece) else { return nil }
            events += ended
        }
        for event in events { try promise(event.data.count <= bytesMax, "an event is past the limit") }
        return events
    }

    /// Returns the events according to the standard, from the whole stream at once.
    private static func expected(_ bytes: [UInt8]) -> [ServerSentEvent] {
        var events: [ServerSentEvent] = []
        var (name, id, data) = ("", "", [[UInt8]]())
        for line in self.lines(bytes) {
            guard !line.isEmpty else {
                let joined = Array(data.joined(separator: [0x0A]))
                if !data.isEmpty {
                    events.append(ServerSentEvent(name: name.isEmpty ? "message" : name, id: id, data: joined))
                }
                (name, data) = ("", [])
                continue
            }
            let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
            var value = parts.count == 2 ? parts[1] : []
            if value.first == 0x20 { value.removeFirst() }
            switch parts[0] {
            case Array("data".utf8)[...]: data.append(Array(value))
            case Array("event".utf8)[...]: name = String(decoding: value, as: UTF8.self)
            case Array("id".utf8)[...]: if !value.contains(0) { id = String(decoding: value, as: UTF8.self) }
            default: break
            }
        }
        return events
    }

    /// Returns the complete lines, without a byte order mark.
    private static func lines(_ bytes: [UInt8]) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var line: [UInt8] = []
        var index = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        while index < bytes.count {
            if bytes[index] == 0x0D || bytes[index] == 0x0A {
                lines.append(line)
                line = []
                if bytes[index] == 0x0D, index + 1 < bytes.count, bytes[index + 1] == 0x0A { index += 1 }
            } else {
                line.append(bytes[index])
            }
            index += 1
        }
        return lines
    }

    /// Checks that every member of a valid object is found with its value.
    private static func checkMembers(_ data: [UInt8]) throws(BrokenPromise) {
        let members = JSONMembers(data)
        guard let text = String(validating: data, as: UTF8.self), let value = try? JSONReader.read(text) else { return }
        guard case .object(let known) = value else {
            return try promise(members == nil, "members are found in text that is not an object")
        }
        guard let members else { throw BrokenPromise("no members are found in an object") }
        // Names with escapes are not searched for.
        for member in known where !text.contains("\\") && known.last(where: { $0.name == member.name }) == member {
            let raw = members.raw(member.name).map { String(decoding: $0, as: UTF8.self) }
            let read = raw.flatMap { try? JSONReader.read($0) }
            try promise(read == member.value, "the member \(member.name) is found as \(raw ?? "nothing")")
        }
    }
}
