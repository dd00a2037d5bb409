internal import Platform
internal import Wire

/// The stages of a connection: accept, read, flush, end.
extension EventLoop {
    func connection(_ id: ConnectionID) -> Connection? {
        let index = Int(id.index)
        guard index < self.connections.count, self.generations[index] == id.generation else { return nil }
        return self.connections[index]
    }

    func markDirty(_ connection: Connection) {
        guard !connection.isDirty else { return }
        connection.isDirty = true
        self.dirty.append(connection)
    }

    // MARK: Begin

    func accept(listener index: Int) {
        self.areListenersCrowded[index] = false
        let listener = self.server.listeners[index]
        for number in 0..<self.memory.limits.acceptsPerTurn {
            guard self.server.hasRoom(listener) else {
                // After an accepted connection there is no need to pause, because the poll reports the next connection.
                if number == 0 { self.pauseAccepting(listener: index, .connectionsMax) }
                return
            }
            switch System.accept(listener.descriptor) {
            case .none: return
            case .exhausted: return self.pauseAccepting(listener: index, .openFiles)
            case .connection(let descriptor, let bits):
                let network = bits == 0 ? nil : ClientNetwork(listener: index, bits: bits)
                if let network, !self.server.clients.begin(network) {
                    self.memory.tally.met(.connectionsPerAddressMax)
                    Descriptor.close(descriptor)
                    continue
                }
                if network != nil { System.setNoDelay(descriptor) }
                self.adopt(descriptor, listener: index, network, tls: self.server.context(listener: index))
            }
        }
        self.memory.tally.met(.acceptsPerTurn)
        self.areListenersCrowded[index] = true
    }

    /// Continues to accept connections on listeners that had more than one turn accepts. Otherwise epoll would report
    /// these listeners again only after all ready connections.
    func acceptCrowds() {
        for index in self.areListenersCrowded.indices where self.areListenersCrowded[index] {
            self.accept(listener: index)
        }
    }

    /// Stops accepting on a listener until the next second. Its connections wait, or other loops accept them.
    private func pauseAccepting(listener index: Int, _ limit: TransportLimit) {
        self.unwatchListener(index)
        // Update the count last. Accepting has then stopped when the count is visible.
        self.memory.tally.met(limit)
    }

    private func adopt(_ descriptor: Int32, listener: Int, _ network: ClientNetwork?, tls: TLSContext?) {
        self.makeRoomForHandshake()
        if self.freeIndices.isEmpty {
            self.freeIndices.append(UInt32(self.connections.count))
            self.connections.append(nil)
            self.generations.append(0)
            self.nextCheckTimes.append(0)
        }
        let index = self.freeIndices.removeLast()
        // Generations stay below the bit that marks special tokens.
        let generation =
            self.generations[Int(index)] & 0x7FFF_FFFE == 0x7FFF_FFFE ? 1 : self.generations[Int(index)] + 1
        self.generations[Int(index)] = generation
        let connection = Connection(
            id: ConnectionID(index: index, generation: generation),
            descriptor: descriptor,
            listener: listener,
            network: network,
            stage: tls == nil ? .sniffing : .handshaking,
            now: self.memory.now
        )
        self.connections[Int(index)] = connection
        self.nextCheckTimes[Int(index)] = 0
        self.handshakes.append(connection.id) { self.isInHandshake($0) }
        self.connectionCount += 1
        self.server.connectionCounts[listener].begin()
        if let tls {
            connection.tls = TLSSession(context: tls, pipe: self.pipe)
        } else {
            // Edge-triggered: the first bytes stay in the socket until they show the protocol.
            connection.interest = [.readable, .peerEnded, .edge]
        }
        let isWatched = self.poll.add(descriptor, connection.interest, token: connection.token)
        if !isWatched || (tls != nil && connection.tls == nil) { self.destroy(connection) }
    }

    // MARK: Handshakes

    /// If the limit is reached, ends the oldest handshake. Unfinished handshakes then cannot exclude new clients.
    private func makeRoomForHandshake() {
        guard self.handshakes.count >= self.server.handshakesPerLoopMax,
            let oldest = self.handshakes.oldest(isThere: { self.isInHandshake($0) }),
            let connection = self.connection(oldest)
        else { return }
        self.memory.tally.met(.handshakesMax)
        self.destroy(connection)
    }

    private func isInHandshake(_ id: ConnectionID) -> Bool {
        self.connection(id)?.isInHandshake ?? false
    }

    /// Records that the connection has begun HTTP or has ended.
    private func leaveHandshake(_ connection: Connection) {
        guard connection.isInHandshake else { return }
        connection.isInHandshake = false
        self.handshakes.left()
    }

    // MARK: Read

    func ready(_ connection: Connection, _ readiness: Poll.Readiness) {
        switch connection.stage {
        case .sniffing:
            self.sniff(connection, hasPeerEnded: readiness.contains(.peerEnded))
        case .handshaking, .http1, .http2, .lingering:
            if readiness.contains(.writable) { self.markDirty(connection) }
            if connection.interest == .peerEnded {
                self.peerEnded(connection)
            } else if !readiness.intersection([.readable, .broken]).isEmpty {
                self.read(connection)
            }
        case .closed: ()
        }
    }

    /// Detects the protocol from the first bytes. Only HTTP/2's preface begins with `PRI `.
    ///
    /// - `hasPeerEnded`: true if the peer sends no further bytes.
    private func sniff(_ connection: Connection, hasPeerEnded: Bool) {
        let marker = ByteView("PRI ")
        switch System.peek(connection.descriptor, into: self.readBuffer, bytesMax: marker.count) {
        case .wouldBlock: ()
        case .ended, .reset: self.destroy(connection)
        case .bytes(let count):
            let first = self.readBuffer.first(count)
            let isHTTP2 = first == marker[0..<count]
            guard !isHTTP2 || count == marker.count else {
                if hasPeerEnded { self.destroy(connection) }
                return
            }
            self.watch(connection, .readable)
            if isHTTP2 { self.beginHTTP2(connection) } else { self.beginHTTP1(connection) }
            self.read(connection)
        }
    }

    private func beginHTTP2(_ connection: Connection) {
        self.leaveHandshake(connection)
        connection.stage = .http2
        connection.http2 = HTTP2Session(
            memory: self.memory,
            library: self.library,
            handler: self.handler,
            id: connection.id,
            listener: connection.listener,
            streamsAtFirst: self.streamsAtFirst(connection)
        )
        self.markDirty(connection)
    }

    private func streamsAtFirst(_ connection: Connection) -> Int? {
        guard let limit = self.server.listeners[connection.listener].streamsAtFirst else { return nil }
        return connection.hasShownCertificate ? nil : limit
    }

    private func beginHTTP1(_ connection: Connection) {
        self.leaveHandshake(connection)
        connection.stage = .http1
        // Update the time, because a loop without connections does not update it.
        self.memory.wallSeconds = SystemClock.wall / 1000
        connection.http1 = HTTP1Session(
            memory: self.memory,
            handler: self.handler,
            id: connection.id,
            listener: connection.listener
        )
    }

    private func read(_ connection: Connection) {
        let received = System.receive(connection.descriptor, into: self.readBuffer)
        switch received {
        case .wouldBlock: ()
        case .ended: self.peerEnded(connection)
        case .reset:
            connection.hasLostBytes = true
            self.peerEnded(connection)
        case .bytes(let count):
            let bytes = self.readBuffer.first(count)
            if connection.stage == .lingering { return }
            if count == self.readBuffer.count { self.memory.tally.met(.readBytesPerTurn) }
            if connection.tls != nil {
                self.decrypt(connection, bytes)
            } else {
                connection.http2?.receive(bytes)
                connection.http1?.receive(bytes)
                self.markDirty(connection)
            }
            self.weigh(connection, bytes: count)
        }
    }

    /// Handles the end of the peer's data. An HTTP/1 peer may still wait for the rest of its answer.
    private func peerEnded(_ connection: Connection) {
        let isAnswering = connection.stage == .http1 && connection.http1?.peerEnded() == true
        guard isAnswering || (connection.stage == .http1 && !connection.output.isEmpty) else {
            return self.destroy(connection)
        }
        self.watch(connection, .writable)
    }

    private func decrypt(_ connection: Connection, _ bytes: ByteView) {
        guard let tls = connection.tls else { return }
        self.pipe.input = bytes
        self.markDirty(connection)
        defer {
            self.pipe.input = ByteView()
            self.takeCipherText(connection)
        }
        if connection.stage == .handshaking {
            switch tls.handshake() {
            case .wantsMore: return
            case .failed:
                connection.isDoomed = true
                self.handler.handshakeFailed(OpenSSL.reason())
                // A client that sends cleartext could not read a TLS alert.
                guard CleartextRequest.begins(bytes) else { return }
                self.pipe.output.removeAll()
                connection.output.append(CleartextRequest.answer)
                return
            case .done:
                let certificate = tls.clientCertificate
                connection.hasShownCertificate = certificate != nil
                self.beginHTTP2(connection)
                if let certificate { self.announce(certificate, of: connection) }
            }
        }
        guard let session = connection.http2 else { return }
        // Discard the number of handshake records, which every connection has.
        _ = self.pipe.takeControlRecords()
        var hasRead = false
        while connection.stage == .http2 {
            guard let count = tls.read(into: self.plaintextBuffer) else {
                connection.isDoomed = true
                return
            }
            session.controlRecordsReceived(self.pipe.takeControlRecords())
            if count == 0 { return self.noteRecord(of: connection, tls, isAnother: hasRead) }
            hasRead = true
            session.receive(self.plaintextBuffer.first(count))
            // Usually all data has been read now. Another read would cost up to a tenth of a single push.
            if self.pipe.input.isEmpty, !tls.hasPartOfRecord {
                connection.recordSince = .max
                return
            }
        }
    }

    /// Records the time since which a TLS record has been incomplete.
    ///
    /// - `isAnother`: true if whole records were just read. The incomplete record is then a new one.
    private func noteRecord(of connection: Connection, _ tls: TLSSession, isAnother: Bool) {
        if !tls.hasPartOfRecord {
            connection.recordSince = .max
        } else if isAnother || connection.recordSince == .max {
            connection.recordSince = self.memory.now
        }
    }

    /// Passes a certificate to the handler before any request is read. If the handler then ends the connection,
    /// SETTINGS and GOAWAY are sent immediately, and no request that arrived with the handshake is served.
    private func announce(_ certificate: ClientCertificate, of connection: Connection) {
        self.handler.certificateShown(certificate, on: connection.id)
        guard connection.isGoingAway else { return }
        self.takeCipherText(connection)
        self.flush(connection)
    }

    /// Moves the output of TLS to the connection's output, which the next flush sends.
    private func takeCipherText(_ connection: Connection) {
        guard !self.pipe.output.isEmpty else { return }
        connection.hasAnswersOfTLS = true
        connection.output.append(self.pipe.output.view)
        self.pipe.output.removeAll()
    }

    // MARK: Write

    /// Writes the output of every dirty connection. A flush may make other connections dirty.
    func flushDirty() {
        var index = 0
        while index < self.dirty.count {
            let connection = self.dirty[index]
            connection.isDirty = false
            self.flush(connection)
            index += 1
        }
        self.dirty.removeAll(keepingCapacity: true)
    }

    private func flush(_ connection: Connection) {
        guard connection.stage != .closed else { return }
        self.nextCheckTimes[Int(connection.id.index)] = 0
        guard self.sendKept(connection) else { return }
        if connection.isDoomed {
            if connection.stage == .handshaking { self.linger(connection) } else { self.destroy(connection) }
            return
        }
        guard connection.stage == .http2 || connection.stage == .http1 else { return }
        while connection.output.isEmpty {
            self.produced.removeAll()
            connection.http2?.produce(into: &self.produced, bytesMax: self.memory.limits.outputBytesMax)
            connection.http1?.produce(into: &self.produced, bytesMax: self.memory.limits.outputBytesMax)
            guard !self.produced.isEmpty else { break }
            guard self.send(connection) else { return }
        }
        guard connection.output.isEmpty else { return self.watchUnsent(connection) }
        if connection.isOver {
            self.linger(connection)
        } else {
            self.watch(connection, connection.quietInterest)
        }
    }

    /// Sends the bytes that the socket did not accept earlier.
    ///
    /// - Returns: false if no more bytes can be sent now.
    private func sendKept(_ connection: Connection) -> Bool {
        guard !connection.output.isEmpty else { return true }
        while !connection.output.isEmpty {
            switch System.send(connection.descriptor, connection.output.view) {
            case .bytes(let count):
                connection.output.consume(count)
                connection.stalledSince = self.memory.now
            case .wouldBlock:
                if connection.isDoomed { self.destroy(connection) } else { self.watchUnsent(connection) }
                return false
            case .ended, .reset:
                self.destroy(connection)
                return false
            }
        }
        connection.output.free()
        connection.hasAnswersOfTLS = false
        self.watch(connection, connection.quietInterest)
        return true
    }

    /// Sends `produced`, encrypted if the connection uses TLS. Stores the bytes that the socket does not accept.
    private func send(_ connection: Connection) -> Bool {
        if let tls = connection.tls {
            self.pipe.output.removeAll()
            // The output of a failed encryption must not be sent on the next connection.
            defer { self.pipe.output.removeAll() }
            guard tls.write(self.produced.view) else {
                self.destroy(connection)
                return false
            }
            return self.send(connection, self.pipe.output.view)
        }
        return self.send(connection, self.produced.view)
    }

    private func send(_ connection: Connection, _ bytes: ByteView) -> Bool {
        switch System.send(connection.descriptor, bytes) {
        case .ended, .reset:
            connection.hasLostBytes = true
            self.destroy(connection)
            return false
        case .wouldBlock:
            connection.output.append(bytes)
        case .bytes(let count):
            if count < bytes.count { connection.output.append(bytes.dropFirst(count)) }
        }
        if !connection.output.isEmpty { connection.stalledSince = self.memory.now }
        return true
    }

    /// Waits until the socket accepts more bytes. Meanwhile, nothing is read if too many frames are queued, or if
    /// answers of TLS are unsent, because their number has no limit.
    private func watchUnsent(_ connection: Connection) {
        guard connection.http1 == nil else { return self.watch(connection, .writable) }
        let isReadable =
            !connection.hasAnswersOfTLS && (connection.http2?.framesPending ?? 0) < self.memory.limits.outputFramesMax
        if !isReadable, connection.interest.contains(.readable) { self.memory.tally.met(.outputFramesMax) }
        self.watch(connection, isReadable ? [.readable, .writable] : .writable)
    }

    /// Watches a connection for other events. If memory is exhausted, the connection ends, because its events would be
    /// lost.
    private func watch(_ connection: Connection, _ interest: Poll.Readiness) {
        guard connection.interest != interest else { return }
        connection.interest = interest
        guard !self.poll(of: connection).modify(connection.descriptor, interest, token: connection.token) else {
            return
        }
        connection.isDoomed = true
        self.markDirty(connection)
    }

    // MARK: End

    /// Shuts down the server's side, and waits briefly until the peer closes the connection. If the connection were
    /// closed immediately while the peer sends, the system would discard the last bytes to the peer.
    private func linger(_ connection: Connection) {
        self.leaveHandshake(connection)
        connection.stage = .lingering
        connection.stalledSince = self.memory.now
        if let tls = connection.tls {
            tls.shutdown()
            if !self.pipe.output.isEmpty { _ = System.send(connection.descriptor, self.pipe.output.view) }
            self.pipe.output.removeAll()
        }
        connection.http2?.end()
        connection.http1?.end()
        System.shutdownWriting(connection.descriptor)
        self.watch(connection, .readable)
    }

    /// Ends a connection immediately.
    func destroy(_ connection: Connection) {
        guard connection.stage != .closed else { return }
        self.forget(connection)
        let isFile = connection.network == nil
        self.endsUnread =
            connection.hasLostBytes || !connection.output.isEmpty || (isFile && System.wasReset(connection.descriptor))
        connection.http2?.end()
        connection.http1?.end()
        self.endsUnread = false
        connection.tls = nil
        Descriptor.close(connection.descriptor)
        guard connection.isKnownToHandler else { return }
        self.handler.connectionClosed(connection.id)
    }

    /// Removes a connection from the table.
    private func forget(_ connection: Connection) {
        self.leaveHandshake(connection)
        if let network = connection.network { self.server.clients.end(network) }
        connection.stage = .closed
        let index = connection.id.index
        self.connections[Int(index)] = nil
        self.nextCheckTimes[Int(index)] = .max
        self.freeIndices.append(index)
        self.connectionCount -= 1
        if connection.isBusy { self.busyConnections.end() }
        self.server.connectionCounts[connection.listener].end()
        // The handler counts all connections at the end of a turn, including those without requests.
        self.memory.wasHandlerNotified = true
    }

    /// Ends a connection that has exceeded a time limit.
    func secondPassed(_ connection: Connection) {
        let now = self.memory.now
        switch connection.stage {
        case .sniffing, .handshaking:
            if self.hasHandshakeExpired(connection) { self.destroy(connection, .handshakeSeconds) }
        case .lingering:
            let lingered = now - connection.stalledSince
            if lingered > Int64(self.memory.limits.lingerSeconds) * 1000 { self.destroy(connection, .lingerSeconds) }
        case .http2:
            guard let session = connection.http2 else { return }
            if self.isStalled(connection) {
                self.destroy(connection, .writeStallSeconds)
            } else if !session.hasReceivedFrame && self.hasHandshakeExpired(connection) {
                self.destroy(connection, .handshakeSeconds)
            } else if now > self.recordDueAt(connection) {
                self.destroy(connection, .requestSeconds)
            } else if !session.secondPassed() {
                self.destroy(connection, .pingSeconds)
            } else if session.wantsToWrite || session.isFinished {
                self.markDirty(connection)
            } else if connection.output.isEmpty {
                self.nextCheckTimes[Int(connection.id.index)] = min(session.isQuietUntil, self.recordDueAt(connection))
            }
        case .http1:
            guard let session = connection.http1 else { return }
            if self.isStalled(connection) {
                self.destroy(connection, .writeStallSeconds)
            } else if !session.secondPassed() {
                self.destroy(connection)
            } else if session.wantsToWrite || session.isFinished {
                self.markDirty(connection)
            } else if connection.output.isEmpty {
                self.nextCheckTimes[Int(connection.id.index)] = session.isQuietUntil
            }
        case .closed: ()
        }
    }

    private func destroy(_ connection: Connection, _ limit: TransportLimit) {
        self.memory.tally.met(limit)
        self.destroy(connection)
    }

    /// The time at which the connection ends because of an incomplete TLS record; `Int64.max` if there is none.
    private func recordDueAt(_ connection: Connection) -> Int64 {
        let (since, wait) = (connection.recordSince, Int64(self.memory.limits.requestSeconds) * 1000)
        return since == .max ? .max : since + wait
    }

    /// Returns true if the socket has accepted none of the unsent bytes for too long.
    private func isStalled(_ connection: Connection) -> Bool {
        let stalled = connection.output.isEmpty ? 0 : self.memory.now - connection.stalledSince
        return stalled > Int64(self.memory.limits.writeStallSeconds) * 1000
    }

    private func hasHandshakeExpired(_ connection: Connection) -> Bool {
        self.memory.now - connection.acceptedAt > Int64(self.memory.limits.handshakeSeconds) * 1000
    }
}
