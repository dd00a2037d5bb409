import Engine
private import Glibc
import Platform

/// The queues between the engine's thread and the store's thread.
///
/// `@unchecked Sendable`: `monitor` guards every field that changes.
final class StoreExchange: @unchecked Sendable {
    /// A descriptor that is readable from `wake` until `silence`.
    let descriptor: Int32
    private let writing: Int32
    /// Called with each database setting that the administrator should know.
    let warn: @Sendable (String) -> Void
    private let signal: @Sendable () -> Void
    private let monitor = Monitor()
    private var requests: [ClusterRequest] = []
    private var replies: [ClusterReply] = []
    private var wantsStop = false
    /// The result of the first attempt to attach; nil before its end.
    private var firstAttempt: Result<Void, StoreError>?

    /// - Throws: `StoreError` if the process has no descriptor left.
    init(
        _ signal: @escaping @Sendable () -> Void,
        warn: @escaping @Sendable (String) -> Void
    ) throws(StoreError) {
        self.signal = signal
        self.warn = warn
        do throws(SystemError) {
            (self.descriptor, self.writing) = try Descriptor.pipe()
        } catch {
            throw StoreError(
                message: "No descriptor is left for the store: \(error.message). Raise the limit of open files "
                    + "(LimitNOFILE=)."
            )
        }
    }

    deinit {
        close(self.descriptor)
        close(self.writing)
    }

    // MARK: The engine's side

    func submit(_ request: ClusterRequest) {
        let isFirst = self.monitor.withLock {
            self.requests.append(request)
            return self.requests.count == 1
        }
        if isFirst { self.wake() }
    }

    func takeReplies(into replies: inout [ClusterReply]) {
        self.monitor.withLock {
            if replies.isEmpty { swap(&replies, &self.replies) } else { replies += self.replies }
            self.replies.removeAll(keepingCapacity: true)
        }
    }

    func waitForReplies(milliseconds: Int64) {
        let end = SystemClock.monotonic + milliseconds
        self.monitor.withLock {
            while self.replies.isEmpty {
                guard self.monitor.wait(until: end) else { break }
            }
        }
    }

    /// Waits for the result of the first attempt to attach.
    func waitForFirstAttempt() throws(StoreError) {
        let attempt = self.monitor.withLock {
            while self.firstAttempt == nil { self.monitor.wait() }
            return self.firstAttempt
        }
        try attempt?.get()
    }

    /// Makes the store's thread end.
    func stop() {
        self.monitor.withLock { self.wantsStop = true }
        self.wake()
    }

    /// Ends the current wait of the store's thread, or the next one.
    private func wake() {
        // If the pipe is full, the descriptor is already readable.
        _ = try? Descriptor.write(self.writing, [1])
    }

    // MARK: The store's side

    func takeRequests() -> [ClusterRequest] {
        self.monitor.withLock {
            defer { self.requests.removeAll() }
            return self.requests
        }
    }

    /// Passes all `replies` to the engine and empties the array.
    func deliver(_ replies: inout [ClusterReply]) {
        let isFirst = self.monitor.withLock {
            let wasEmpty = self.replies.isEmpty
            self.replies += replies
            self.monitor.broadcast()
            return wasEmpty
        }
        replies.removeAll(keepingCapacity: true)
        if isFirst { self.signal() }
    }

    var isStopping: Bool { self.monitor.withLock { self.wantsStop } }

    /// - Parameter error: the reason why the attempt to attach failed; nil if the store is attached.
    func attempted(_ error: StoreError?) {
        self.monitor.withLock {
            guard self.firstAttempt == nil else { return }
            self.firstAttempt = error.map { .failure($0) } ?? .success(())
            self.monitor.broadcast()
        }
    }

    /// Makes the descriptor unreadable. Called before the queues are checked.
    func silence() {
        var signals = [UInt8](repeating: 0, count: 256)
        while (try? Descriptor.read(self.descriptor, into: &signals)) == signals.count {}
    }
}
