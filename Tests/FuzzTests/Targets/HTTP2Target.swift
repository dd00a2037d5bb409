import HTTPTransport
import Wire

/// One HTTP/2 session. The input determines the bytes of the peer, the actions of the handler, and the time.
///
/// The first byte selects the limits, and whether the session has begun. Then follow steps: the lower three bits of a
/// byte select the kind of step, and its data follows. Every input runs twice, the second time with the peer's bytes in
/// small pieces. The events and answers must be the same.
enum HTTP2Target {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        let whole = HTTP2Script(input, pieceBytes: .max)
        try whole.run()
        var reader = InputReader(input)
        let pieces = HTTP2Script(input, pieceBytes: 1 + Int(reader.byte() >> 4))
        try pieces.run()
        try promise(whole.handler.events == pieces.handler.events, "events change with the pieces that bytes come in")
        try promise(
            whole.output.view == pieces.output.view,
            "answers change with the pieces that bytes come in"
        )
    }
}

/// One run with an input.
final class HTTP2Script {
    let handler: ScriptedRequests
    private(set) var output = ByteBuffer()

    private var reader: InputReader
    private let pieceBytes: Int
    private let memory: LoopMemory
    private let session: HTTP2Session
    private let streams: StreamPool

    init(_ input: ByteView, pieceBytes: Int) {
        self.reader = InputReader(input)
        self.pieceBytes = pieceBytes
        let flags = self.reader.byte()
        var limits = TransportLimits()
        if flags & 1 != 0 {
            limits.streamsPerConnectionMax = 3
            limits.streamsPerLoopMax = 2
            limits.headerListBytesMax = 200
            limits.controlFramesBurst = 4
            limits.controlFramesPerSecond = 1
            limits.streamingBytesSoftMax = 64
        }
        self.streams = StreamPool(streamsMax: limits.streamsPerLoopMax)
        self.memory = LoopMemory(limits: limits, streams: self.streams, now: 1000)
        self.handler = ScriptedRequests(limits)
        self.session = HTTP2Session(
            memory: self.memory,
            library: HTTP2Library(limits: limits),
            handler: self.handler,
            id: ConnectionID(index: 0, generation: 1),
            listener: 0
        )
        self.handler.session = self.session
        self.handler.answersAtOnce = flags & 2 != 0
        if flags & 4 == 0 {
            self.receive(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0])
        }
    }

    func run() throws(BrokenPromise) {
        while !self.reader.isAtEnd {
            self.step()
            if let broken = self.handler.broken { throw broken }
        }
        try self.produce(bytesMax: 1 << 20)
        let hasErrorGoAway = try FrameList(self.output.view).check()
        try promise(!self.session.hasFailed || hasErrorGoAway, "a session fails and does not say why")
        self.session.end()
        self.handler.sessionEnded()
        if let broken = self.handler.broken { throw broken }
        try promise(self.streams.usedCount == 0, "a session leaks \(self.streams.usedCount) streams")
    }

    private func step() {
        let choice = self.reader.byte()
        let more = Int(choice >> 3)
        switch choice & 7 {
        case 0: self.receive(self.reader.view(Int(self.reader.byte())).array)
        case 1: self.receiveFrame()
        case 2: self.tryProduce(bytesMax: 1 + Int(self.reader.byte()) * 64)
        case 3:
            self.memory.now += Int64(self.reader.byte()) << Int64(more & 15)
            _ = self.session.secondPassed()
        case 4: self.handler.act(more & 7, Int(self.reader.byte()), size: Int(self.reader.byte()) * 16)
        case 5: self.receiveRequest(more)
        case 6: self.changeConnection(more)
        default: self.receive(self.reader.view(self.reader.rest.count).array)
        }
    }

    /// Receives a frame of any type with a correct length.
    private func receiveFrame() {
        let head = [self.reader.byte(), self.reader.byte(), 0, 0, 0, self.reader.byte()]
        let payload = self.reader.view(Int(self.reader.byte())).array
        self.receive([0, 0, UInt8(payload.count)] + head + payload)
    }

    /// Receives a request that every library accepts.
    private func receiveRequest(_ more: Int) {
        let paths: [StaticString] = ["/", "/push", "/wakes", "/v1/stats"]
        let path = ByteView(paths[more & 3]).array
        // :method POST, :scheme https, :path and :authority as literals.
        let fields = [0x83, 0x87, 0x04, UInt8(path.count)] + path + [0x01, 1, 0x61]
        let flags: UInt8 = more & 4 != 0 ? 5 : 4
        self.receive([0, 0, UInt8(fields.count), 1, flags, 0, 0, 0, self.reader.byte()] + fields)
    }

    private func changeConnection(_ more: Int) {
        if more & 16 != 0 { _ = self.session.setStreamWindow(more & 8 != 0 ? more : nil) }
        switch more & 3 {
        case 0: self.session.goAway(debugData: ByteView("bye"))
        case 1: self.session.goAway(debugData: ByteView(), code: .internalError, inFlight: .dropped)
        case 2: _ = self.session.setStreamLimit(min(more, self.memory.limits.streamsPerConnectionMax))
        default: self.session.setPing(everySeconds: more)
        }
    }

    private func receive(_ bytes: [UInt8]) {
        bytes.withByteView { bytes in
            var start = 0
            while start < bytes.count {
                let count = min(self.pieceBytes, bytes.count - start)
                self.session.receive(bytes[start..<start + count])
                start += count
            }
        }
    }

    private func tryProduce(bytesMax: Int) {
        do throws(BrokenPromise) { try self.produce(bytesMax: bytesMax) } catch { self.handler.broken = error }
    }

    private func produce(bytesMax: Int) throws(BrokenPromise) {
        var produced = ByteBuffer()
        self.session.produce(into: &produced, bytesMax: bytesMax)
        // The last frame may exceed the requested size.
        try promise(produced.count < bytesMax + 16_384 + 9, "\(produced.count) bytes for \(bytesMax)")
        self.output.append(produced.view)
    }
}
