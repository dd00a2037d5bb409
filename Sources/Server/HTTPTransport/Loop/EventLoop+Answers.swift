package import Wire

/// What the handler may ask of its loop, on the loop's thread.
extension EventLoop {
    /// Answers a stream that waits: a head and, unless it is nil or empty, a body, which is copied.
    ///
    /// - Returns: false when the stream is gone or was answered before.
    @discardableResult
    package func respond(_ stream: StreamID, _ response: Response, body: ByteView? = nil) -> Bool {
        guard let connection = self.connection(stream.connection) else { return false }
        if let session = connection.http2 {
            self.markDirty(connection)
            let isTaken = session.respond(stream.number, response, body: body)
            if body != nil { self.endIfTooMuchIsQueued(connection, session.queuedBytes) }
            return isTaken
        }
        guard let session = connection.http1 else { return false }
        self.markDirty(connection)
        let isTaken = session.respond(stream.number, response, body: body)
        if body != nil { self.endIfTooMuchIsQueued(connection, session.queuedBytes) }
        return isTaken
    }

    /// Answers a stream that waits with a head, which leaves at once; `write` and `finish` follow.
    ///
    /// - Returns: false when the stream is gone or was answered before.
    package func beginStreaming(_ stream: StreamID, _ response: Response) -> Bool {
        guard let connection = self.connection(stream.connection) else { return false }
        if let session = connection.http2 {
            self.markDirty(connection)
            return session.beginStreaming(stream.number, response)
        }
        self.markDirty(connection)
        return connection.http1?.beginStreaming(stream.number, response) ?? false
    }

    /// Queues bytes on a streaming response.
    ///
    /// - Returns: the bytes that wait on the stream, these included; nil when it is gone or finished.
    package func write(_ stream: StreamID, _ bytes: ByteView) -> Int? {
        guard let connection = self.connection(stream.connection) else { return nil }
        if let session = connection.http2 {
            self.markDirty(connection)
            let queued = session.write(stream.number, bytes)
            self.endIfTooMuchIsQueued(connection, session.queuedBytes)
            return queued
        }
        self.markDirty(connection)
        guard let queued = connection.http1?.write(stream.number, bytes) else { return nil }
        self.endIfTooMuchIsQueued(connection, queued)
        return queued
    }

    /// A peer that lets its answers pile up loses its connection at the end of the turn.
    private func endIfTooMuchIsQueued(_ connection: Connection, _ bytes: Int) {
        guard bytes > self.limits.queuedBytesPerConnectionMax, !connection.isDoomed else { return }
        self.memory.tally.met(.queuedBytesPerConnectionMax)
        self.close(connection.id)
    }

    /// Ends a streaming response after what was written.
    package func finish(_ stream: StreamID) {
        guard let connection = self.connection(stream.connection) else { return }
        if let session = connection.http2 {
            session.finish(stream.number)
        } else {
            connection.http1?.finish(stream.number)
        }
        self.markDirty(connection)
    }

    /// Sends a PING every so many seconds; one that is not answered in time ends the connection. nil: none.
    /// HTTP/1.1 has nothing of the kind.
    package func setPing(_ connection: ConnectionID, everySeconds: Int?) {
        guard let connection = self.connection(connection), let session = connection.http2 else { return }
        session.setPing(everySeconds: everySeconds)
        self.looksAt[Int(connection.id.index)] = 0
    }

    /// Takes no further request, lets open streams end as `inFlight` says, then closes. `debugData` and `code` go into
    /// HTTP/2's GOAWAY.
    ///
    /// - Returns: the last stream of which the peer may believe that it was taken; nil where nothing says so.
    @discardableResult
    package func goAway(
        _ connection: ConnectionID,
        debugData: ByteView,
        code: HTTP2ErrorCode = .noError,
        inFlight: StreamsInFlight = .finished
    ) -> Int32? {
        guard let connection = self.connection(connection) else { return nil }
        connection.isGoingAway = true
        self.markDirty(connection)
        if let session = connection.http2 {
            return session.goAway(debugData: debugData, code: code, inFlight: inFlight)
        }
        if let http1 = connection.http1, [.finished, .answeredFirst, .announcedFirst].contains(inFlight) {
            http1.closeAfterAnswer()
        } else {
            connection.isDoomed = true
        }
        return nil
    }

    /// Announces another number of streams that the peer may have open at once. A lower one leaves open streams alone,
    /// and holds once the peer has acknowledged it; streams beyond it are refused. HTTP/1.1 has nothing of the kind.
    ///
    /// - `limit`: cut to the range from 0 to `TransportLimits.streamsPerConnectionMax`.
    /// - Returns: false when the connection is gone, or its peer acknowledges nothing.
    @discardableResult
    package func setStreamLimit(_ connection: ConnectionID, to limit: Int) -> Bool {
        guard let connection = self.connection(connection), let session = connection.http2 else { return false }
        self.markDirty(connection)
        return session.setStreamLimit(min(max(0, limit), self.limits.streamsPerConnectionMax))
    }

    /// Announces another window for every stream of a connection, those that are open too: how many bytes its peer may
    /// send on one before it waits for us. HTTP/1.1 has nothing of the kind.
    ///
    /// - `bytes`: less than half of `TransportLimits.streamWindowBytes`; nil for that, so that what waits goes on.
    /// - Returns: false when the connection is gone, or its peer acknowledges nothing.
    @discardableResult
    package func setStreamWindow(_ connection: ConnectionID, to bytes: Int?) -> Bool {
        guard let connection = self.connection(connection), let session = connection.http2 else { return false }
        self.markDirty(connection)
        return session.setStreamWindow(bytes)
    }

    /// Ends a stream that is not answered to its end with an error; HTTP/1.1 can only end the connection.
    package func reset(_ stream: StreamID, code: HTTP2ErrorCode) {
        guard let connection = self.connection(stream.connection) else { return }
        if let session = connection.http2 {
            session.reset(stream.number, code: code)
        } else {
            connection.isDoomed = true
        }
        self.markDirty(connection)
    }

    /// Ends a connection at the end of this turn; its streams are closed.
    package func close(_ connection: ConnectionID) {
        guard let connection = self.connection(connection) else { return }
        connection.isDoomed = true
        self.markDirty(connection)
    }

    /// Where a connection comes from; nil when it is gone, or came to a socket file.
    package func network(of connection: ConnectionID) -> ClientNetwork? { self.connection(connection)?.network }

    /// True if the peer of a connection to a socket file has read all that was written to it.
    package func hasBeenRead(_ connection: ConnectionID) -> Bool {
        guard let connection = self.connection(connection), connection.network == nil else { return false }
        let queued = connection.http2?.queuedBytes ?? connection.http1?.queuedBytes ?? 0
        return queued == 0 && connection.output.isEmpty && System.hasBeenRead(connection.descriptor)
    }

    /// The user whose process connected to a socket file; nil when the connection is gone, or came to a port.
    package func user(of connection: ConnectionID) -> UInt32? {
        guard let connection = self.connection(connection), connection.network == nil else { return nil }
        return System.peerUser(connection.descriptor)
    }

    /// Calls `body` with every connection that has spoken HTTP.
    package func forEachConnection(_ body: (ConnectionID) -> Void) {
        for connection in self.connections {
            if let connection, connection.http2 != nil || connection.http1 != nil { body(connection.id) }
        }
    }
}
