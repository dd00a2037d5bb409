import HTTPTransport
import Wire

/// Receives the requests of a session, answers them according to the script, and records every broken promise.
final class ScriptedRequests: RequestHandler {
    /// The maximum number of bytes of a body.
    private static let bodyBytesMax = 100

    private enum Held {
        case waiting, streaming
    }

    weak var session: HTTP2Session?
    var answersAtOnce = false
    /// The first broken promise.
    var broken: BrokenPromise?
    private(set) var events: [String] = []

    private let limits: TransportLimits
    private let response = Response()
    private var held: [Int32: Held] = [:]
    private var seen: Set<Int32> = []

    init(_ limits: TransportLimits) {
        self.limits = limits
    }

    private func expect(_ holds: Bool, _ what: @autoclosure () -> String) {
        if !holds, self.broken == nil { self.broken = BrokenPromise(what()) }
    }

    // MARK: Calls of the session

    func bodyBytesMax(for request: Request) -> Int {
        self.expect(!self.seen.contains(request.stream.number), "a body is asked about after its request")
        self.checkFields(request)
        return Self.bodyBytesMax
    }

    func requestReceived(_ request: Request) {
        let number = request.stream.number
        self.expect(number > 0 && number % 2 == 1, "a request has the stream \(number)")
        self.expect(self.seen.insert(number).inserted, "a request came twice")
        self.expect(request.body.count <= Self.bodyBytesMax, "a body is past its limit")
        self.expect(!request.isBodyTooLarge || request.body.isEmpty, "a body that is too large is not all there")
        self.checkFields(request)
        self.held[number] = .waiting
        self.expect(self.held.count <= self.limits.streamsPerConnectionMax, "too many streams are open")
        self.events.append("\(number) \(request.method.array) \(request.path.array) \(request.body.array)")
        if self.answersAtOnce { self.act(0, 0, size: 0) }
    }

    private func checkFields(_ request: Request) {
        var bytes = request.method.count + request.path.count
        for index in 0..<request.headerCount {
            let field = request.header(at: index)
            self.expect(!field.name.isEmpty, "a field has no name")
            self.expect(field.name.array == field.name.array.map(\.lowercasedASCII), "a field's name has capitals")
            bytes += field.name.count + field.value.count + 32
        }
        self.expect(bytes <= self.limits.headerListBytesMax, "a header list is past its limit")
        self.expect(!request.method.isEmpty && !request.path.isEmpty, "a request has no method or no path")
    }

    func streamClosed(_ stream: StreamID) {
        self.expect(self.held.removeValue(forKey: stream.number) != nil, "an unknown stream was closed")
        self.events.append("closed \(stream.number)")
    }

    func streamDrained(_ stream: StreamID) { self.events.append("drained \(stream.number)") }

    /// The session has ended, so all held streams must be closed.
    func sessionEnded() {
        self.expect(self.held.isEmpty, "streams are left open")
        self.act(0, 1, size: 0)
    }

    // MARK: Actions of the handler

    /// Performs an action on a stream: on a held stream if there is one, otherwise on stream number `choice`.
    func act(_ action: Int, _ choice: Int, size: Int) {
        guard let session = self.session else { return }
        let numbers = self.held.keys.sorted()
        let number = numbers.isEmpty ? Int32(choice) : numbers[choice % numbers.count]
        let held = self.held[number]
        let body = [UInt8](repeating: 0x61, count: size)
        switch action {
        case 0, 1:
            self.response.begin(status: 200)
            if action == 1 { self.response.add("apns-id", ByteView("a")) }
            if held == .waiting { self.held[number] = nil }
            let isAnswered = body.withByteView { session.respond(number, self.response, body: $0) }
            self.expect(isAnswered == (held == .waiting), "an answer is taken wrongly")
        case 2:
            self.response.begin(status: 200)
            if held == .waiting { self.held[number] = .streaming }
            let hasBegun = session.beginStreaming(number, self.response)
            self.expect(hasBegun == (held == .waiting), "a streaming answer begins wrongly")
        case 3:
            let waiting = body.withByteView { session.write(number, $0) }
            self.expect((waiting != nil) == (held == .streaming), "bytes are taken wrongly")
            self.expect(waiting ?? size >= size, "bytes are lost")
        case 4:
            if held == .streaming { self.held[number] = nil }
            session.finish(number)
        default: session.reset(number, code: .cancel)
        }
    }
}
