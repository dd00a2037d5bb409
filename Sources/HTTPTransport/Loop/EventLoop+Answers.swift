package import Bytes

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
            return session.respond(stream.number, response, body: body)
        }
        return connection.http1?.respond(stream.number, response, body: body) ?? false
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
        return connection.http1?.beginStreaming(stream.number, response) ?? false
    }

    /// Queues bytes on a streaming response.
    ///
    /// - Returns: the bytes that wait on the stream, these included; nil when it is gone or finished.
    package func write(_ stream: StreamID, _ bytes: ByteView) -> Int? {
        guard let connection = self.connection(stream.connection) else { return nil }
        if let session = connection.http2 {
            self.markDirty(connection)
            return session.write(stream.number, bytes)
        }
        return connection.http1?.write(stream.number, bytes)
    }

    /// Ends a streaming response after what was written.
    package func finish(_ stream: StreamID) {
        guard let connection = self.connection(stream.connection) else { return }
        if let session = connection.http2 {
            self.markDirty(connection)
            session.finish(stream.number)
        } else {
            connection.http1?.finish(stream.number)
        }
    }

    /// Sends a PING every so many seconds; one that is not answered in time ends the connection. nil: none.
    /// HTTP/1.1 has nothing of the kind.
    package func setPing(_ connection: ConnectionID, everySeconds: Int?) {
        self.connection(connection)?.http2?.setPing(everySeconds: everySeconds)
    }

    /// Takes no further request, finishes open streams, then closes. `debugData` goes into HTTP/2's GOAWAY NO_ERROR.
    package func goAway(_ connection: ConnectionID, debugData: ByteView) {
        guard let connection = self.connection(connection) else { return }
        if let session = connection.http2 {
            session.goAway(debugData: debugData)
            self.markDirty(connection)
        } else if let http1 = connection.http1 {
            http1.closeAfterResponse()
        } else {
            connection.isDoomed = true
            self.markDirty(connection)
        }
    }

    /// Ends a connection at the end of this turn; its streams are closed.
    package func close(_ connection: ConnectionID) {
        guard let connection = self.connection(connection) else { return }
        if let http1 = connection.http1 {
            http1.abandon()
        } else {
            connection.isDoomed = true
            self.markDirty(connection)
        }
    }

    /// Calls `body` with every connection that has spoken HTTP.
    package func forEachConnection(_ body: (ConnectionID) -> Void) {
        for connection in self.connections {
            if let connection, connection.http2 != nil || connection.http1 != nil { body(connection.id) }
        }
    }

    /// The verified client certificate of a TLS connection in DER; nil when it showed none.
    package func peerCertificate(_ connection: ConnectionID) -> [UInt8]? {
        self.connection(connection)?.tls?.peerCertificate
    }
}
