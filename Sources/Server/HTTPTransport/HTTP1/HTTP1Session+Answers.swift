package import Wire

/// Converts the handler's answers to bytes.
extension HTTP1Session {
    private func slot(_ number: Int32, _ phase: StreamState.Phase) -> StreamSlot? {
        guard let slot, number == slot.state.number, slot.state.phase == phase else { return nil }
        return slot
    }

    /// The number of bytes of the answer's body that have not been produced.
    var queuedBytes: Int { self.slot?.state.output.count ?? 0 }

    /// Answers a waiting request with a head. A body follows unless it is nil or empty.
    ///
    /// - Returns: false if the request no longer exists or has been answered.
    package func respond(_ number: Int32, _ response: Response, body: ByteView?) -> Bool {
        guard let slot = self.slot(number, .waiting) else { return false }
        self.answer(slot, .sending)
        self.writeHead(response, bodyBytes: body?.count ?? 0)
        if let body, !self.isAnswerBare { slot.state.output.append(body) }
        return true
    }

    /// Answers a waiting request with a head. `write` and `finish` add the body.
    package func beginStreaming(_ number: Int32, _ response: Response) -> Bool {
        guard let slot = self.slot(number, .waiting) else { return false }
        self.answer(slot, .streaming)
        self.writeHead(response, bodyBytes: nil)
        if self.hasInput { self.leaveInput() }
        return true
    }

    private func answer(_ slot: StreamSlot, _ phase: StreamState.Phase) {
        if !slot.state.hasRequestEnded { self.noteAnswerBeforeBody() }
        slot.state.phase = phase
        slot.state.since = self.memory.now
    }

    /// Appends bytes to a streaming answer.
    ///
    /// - Returns: the number of queued bytes, including these; nil if the request no longer exists or its answer is
    ///   finished.
    package func write(_ number: Int32, _ bytes: ByteView) -> Int? {
        guard let slot = self.slot(number, .streaming) else { return nil }
        guard !self.isAnswerBare else { return 0 }
        slot.state.output.append(bytes)
        self.memory.noteStreaming(slot)
        return slot.state.output.count
    }

    /// Ends a streaming answer after the bytes written so far.
    package func finish(_ number: Int32) {
        guard let slot = self.slot(number, .streaming) else { return }
        slot.state.phase = .sending
        slot.state.since = self.memory.now
    }

    /// Appends bytes to send, until all are appended or `output` has `bytesMax` bytes.
    package func produce(into output: inout ByteBuffer, bytesMax: Int) {
        while true {
            self.closeHead()
            output.append(self.output.view)
            self.output.free()
            guard let slot, !self.isAnswerSent, slot.state.phase == .sending || slot.state.phase == .streaming else {
                break
            }
            self.moveBody(of: slot, to: &output, bytesMax: bytesMax - output.count)
            guard slot.state.output.isEmpty else {
                self.memory.tally.met(.outputBytesMax)
                break
            }
            guard slot.state.phase == .sending else { break }
            if self.isAnswerChunked { output.append("0\r\n\r\n") }
            // Parse later requests now, because they may be answered immediately.
            self.answerSent(slot)
        }
        guard let drained else { return }
        self.drained = nil
        self.memory.wasHandlerNotified = true
        self.handler.streamDrained(drained)
    }

    private func moveBody(of slot: StreamSlot, to output: inout ByteBuffer, bytesMax: Int) {
        let count = min(bytesMax, slot.state.output.count)
        guard count > 0 else { return }
        if self.isAnswerChunked {
            output.append(String(count, radix: 16))
            output.append("\r\n")
        }
        output.append(slot.state.output.view[0..<count])
        if self.isAnswerChunked { output.append("\r\n") }
        slot.state.output.consume(count)
        guard slot.state.phase == .streaming else { return }
        // The next bytes of an event stream may come minutes later, so free the memory.
        if slot.state.output.isEmpty { slot.state.output.free() }
        guard slot.state.isAboveStreamingLimit,
            slot.state.output.count < self.memory.limits.streamingBytesSoftMax / 2
        else { return }
        slot.state.isAboveStreamingLimit = false
        self.drained = self.stream
    }

    // MARK: Heads

    /// Writes the head of an answer except its last lines.
    ///
    /// - `bodyBytes`: the length of the body; nil if unknown.
    func writeHead(_ response: Response, bodyBytes: Int?) {
        self.output.append("HTTP/1.1 ")
        self.output.appendDecimal(Int64(response.status))
        self.output.append(" ")
        self.output.append(ReasonPhrase.of(response.status))
        self.output.append("\r\ndate: ")
        self.memory.date.write(self.memory.wallSeconds, to: &self.output)
        self.output.append("\r\n")
        response.forEachField { name, value in
            // The session writes these fields.
            if name == "content-length" || name == "connection" || name == "transfer-encoding" { return }
            self.output.append(name)
            self.output.append(": ")
            self.output.append(value)
            self.output.append("\r\n")
        }
        self.isAnswerChunked = bodyBytes == nil && self.takesChunks && !self.isAnswerBare
        if self.isAnswerChunked {
            self.output.append("transfer-encoding: chunked\r\n")
        } else if let bodyBytes, response.status != 204, response.status != 304 {
            self.output.append("content-length: ")
            self.output.appendDecimal(Int64(bodyBytes))
            self.output.append("\r\n")
        }
        self.isHeadOpen = true
    }

    /// Writes the last lines of a head.
    func closeHead() {
        guard self.isHeadOpen else { return }
        self.isHeadOpen = false
        if self.isLast { self.output.append("connection: close\r\n") }
        self.output.append("\r\n")
    }
}

/// The reason phrases of status codes, for people (RFC 9110 §15).
private enum ReasonPhrase {
    static func of(_ status: Int) -> StaticString {
        switch status {
        case 200: "OK"
        case 201: "Created"
        case 202: "Accepted"
        case 204: "No Content"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 417: "Expectation Failed"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 503: "Service Unavailable"
        case 505: "HTTP Version Not Supported"
        case _: ""
        }
    }
}
