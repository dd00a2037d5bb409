import HTTPTransport
import Wire

/// One HTTP/1 session that receives the peer's bytes, all at once and in pieces.
///
/// The first byte selects the length of the pieces, and whether the limits are small.
enum MessageTarget {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        guard input.count > 1 else { return }
        let bytes = input.dropFirst(1)
        let isNarrow = input[0] & 1 != 0
        let whole = MessageRun(isNarrow: isNarrow)
        whole.receive(bytes)
        let pieces = MessageRun(isNarrow: isNarrow)
        let count = 1 + Int(input[0] >> 1)
        var rest = bytes
        while !rest.isEmpty {
            pieces.receive(rest[0..<min(count, rest.count)])
            rest = rest.dropFirst(min(count, rest.count))
        }
        try promise(whole.handler.events == pieces.handler.events, "requests change with the pieces that bytes come in")
        try promise(whole.answers == pieces.answers, "answers change with the pieces that bytes come in")
        try promise(whole.session.isFinished == pieces.session.isFinished, "the end changes with the pieces")
        for run in [whole, pieces] {
            run.session.end()
            try promise(run.memory.requestBytes.held == 0, "bytes are still counted as held")
            try promise(run.memory.streams.usedCount == 0, "a stream is leaked")
            if let broken = run.handler.broken { throw broken }
        }
    }
}

/// One run with an input.
private final class MessageRun {
    let memory: LoopMemory
    let handler = MessageHandler()
    let session: HTTP1Session
    private(set) var output = ByteBuffer()

    init(isNarrow: Bool) {
        var limits = TransportLimits()
        if isNarrow { limits.headerListBytesMax = 200 }
        self.memory = LoopMemory(limits: limits, streams: StreamPool(streamsMax: 2), now: 1000)
        let id = ConnectionID(index: 0, generation: 1)
        self.session = HTTP1Session(memory: self.memory, handler: self.handler, id: id, listener: 0)
        self.handler.session = self.session
    }

    /// The answers, without the line that closes the connection: that line may first appear after the answer to a body
    /// that is too large, or earlier.
    var answers: [String] {
        self.output.view.string.split(separator: "\r\n").map(String.init).filter { $0 != "connection: close" }
    }

    func receive(_ bytes: ByteView) {
        self.session.receive(bytes)
        var before: Int
        repeat {
            before = self.output.count
            self.session.produce(into: &self.output, bytesMax: before + 4096)
        } while self.output.count > before
    }
}

/// Answers every request immediately, and checks that the request is valid.
private final class MessageHandler: RequestHandler {
    weak var session: HTTP1Session?
    private(set) var events: [String] = []
    /// The first broken promise.
    private(set) var broken: BrokenPromise?
    private let response = Response()

    func bodyBytesMax(for _: Request) -> Int { 64 }

    func requestReceived(_ request: Request) {
        var (hosts, lengths, codings) = (0, 0, 0)
        var event = "\(request.method.array) \(request.path.array) \(request.authority.array) \(request.body.array)"
        for index in 0..<request.headerCount {
            let (name, value) = request.header(at: index)
            event += " \(name.array) \(value.array)"
            if name == "host" { hosts += 1 }
            if name == "content-length" { lengths += 1 }
            if name == "transfer-encoding" { codings += 1 }
            self.expect(!name.isEmpty && !name.array.contains { $0 <= 0x20 || $0 >= 0x7F }, "a name is invalid")
            self.expect(
                !value.array.contains { ($0 < 0x20 && $0 != 9) || $0 == 0x7F },
                "a value has control characters"
            )
            let ends = [value.array.first, value.array.last]
            self.expect(!ends.contains { $0 == 0x20 || $0 == 9 }, "a value has blanks around it")
        }
        self.expect(hosts <= 1, "a request has two hosts")
        self.expect(lengths + codings <= 1, "the end of a body is declared twice")
        self.expect(!request.method.isEmpty && !request.path.isEmpty, "a request has no method or no path")
        self.expect(!request.path.array.contains { $0 <= 0x20 || $0 >= 0x7F }, "a path is invalid")
        self.expect(request.body.count <= 64, "a body is past its limit")
        self.events.append(event)
        self.response.begin(status: request.isBodyTooLarge ? 413 : 200)
        _ = self.session?.respond(request.stream.number, self.response, body: request.body)
    }

    private func expect(_ holds: Bool, _ what: @autoclosure () -> String) {
        if !holds, self.broken == nil { self.broken = BrokenPromise(what()) }
    }

    func streamClosed(_: StreamID) { self.expect(false, "a request was not answered") }
}
