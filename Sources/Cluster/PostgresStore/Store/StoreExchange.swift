import Engine
private import Glibc
package import Platform

/// Where the engine's thread and the store's leave each other what they have.
///
/// It is `Sendable` without the compiler's proof: `monitor` guards every field that changes.
final class StoreExchange: @unchecked Sendable {
    let bell: PostgresBell
    /// Called with each setting of the database that the operator is to hear of.
    let warn: @Sendable (String) -> Void
    private let ring: @Sendable () -> Void
    private let monitor = Monitor()
    private var requests: [ClusterRequest] = []
    private var replies: [ClusterReply] = []
    private var wantsStop = false
    private var isEnded = false
    /// What came of the first attempt to be attached; nil while it is made.
    private var firstAttempt: Result<Void, StoreError>?

    /// - Throws: `StoreError` when the process may open no further descriptor.
    init(
        _ ring: @escaping @Sendable () -> Void,
        warn: @escaping @Sendable (String) -> Void
    ) throws(StoreError) {
        self.ring = ring
        self.warn = warn
        do throws(SystemError) {
            self.bell = try PostgresBell()
        } catch {
            throw StoreError(
                message: "No descriptor is left for the store: \(error.message). Raise the limit of open files "
                    + "(LimitNOFILE=)."
            )
        }
    }

    // MARK: The engine's side

    func submit(_ request: ClusterRequest) {
        let isFirst = self.monitor.withLock {
            self.requests.append(request)
            return self.requests.count == 1
        }
        if isFirst { self.bell.ring() }
    }

    func takeReplies(into replies: inout [ClusterReply]) {
        self.monitor.withLock {
            if replies.isEmpty { swap(&replies, &self.replies) } else { replies += self.replies }
            self.replies.removeAll(keepingCapacity: true)
        }
    }

    /// Waits for what comes of the first attempt to be attached.
    func waitForFirstAttempt() throws(StoreError) {
        let attempt = self.monitor.withLock {
            while self.firstAttempt == nil { self.monitor.wait() }
            return self.firstAttempt
        }
        try attempt?.get()
    }

    /// Has the store's thread end, and waits for that.
    func stop() {
        self.monitor.withLock { self.wantsStop = true }
        self.bell.ring()
        self.monitor.withLock {
            while !self.isEnded { self.monitor.wait() }
        }
    }

    // MARK: The store's side

    func takeRequests() -> [ClusterRequest] {
        self.monitor.withLock {
            defer { self.requests.removeAll() }
            return self.requests
        }
    }

    /// Hands over all of `replies`, which is empty afterwards.
    func deliver(_ replies: inout [ClusterReply]) {
        let isFirst = self.monitor.withLock {
            let wasEmpty = self.replies.isEmpty
            self.replies += replies
            return wasEmpty
        }
        replies.removeAll(keepingCapacity: true)
        if isFirst { self.ring() }
    }

    var isStopping: Bool { self.monitor.withLock { self.wantsStop } }

    /// - Parameter error: why the store is not attached; nil when it is.
    func attempted(_ error: StoreError?) {
        self.monitor.withLock {
            guard self.firstAttempt == nil else { return }
            self.firstAttempt = error.map { .failure($0) } ?? .success(())
            self.monitor.broadcast()
        }
    }

    func ended() {
        self.monitor.withLock {
            self.isEnded = true
            self.monitor.broadcast()
        }
    }
}

/// Ends a wait for descriptors, from any thread.
package final class PostgresBell: Sendable {
    /// Readable once it was rung, until it is silenced.
    package let descriptor: Int32
    private let writing: Int32

    /// - Throws: `SystemError` when the process may open no further descriptors.
    package init() throws(SystemError) {
        (self.descriptor, self.writing) = try Descriptor.pipe()
    }

    deinit {
        close(self.descriptor)
        close(self.writing)
    }

    /// Ends the wait, now or when it next begins.
    package func ring() {
        // A pipe that is full was rung, too.
        _ = try? Descriptor.write(self.writing, [1])
    }

    /// Forgets that it was rung; by the thread that waits, before it looks at what it was rung for.
    package func silence() {
        var rings = [UInt8](repeating: 0, count: 256)
        while (try? Descriptor.read(self.descriptor, into: &rings)) == rings.count {}
    }
}
