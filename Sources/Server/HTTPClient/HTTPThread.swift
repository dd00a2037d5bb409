import Platform

/// One thread that makes the requests of everybody in this process who awaits or streams answers.
///
/// It is made when it is first needed and lives as long as the process; thousands of streams share it.
///
/// It is `Sendable` without the compiler's proof: `monitor` guards what changes.
package final class HTTPThread: @unchecked Sendable {
    /// Something to do on the thread. A struct, so that the closure is not wrapped anew at each read.
    private struct Work: Sendable {
        let run: @Sendable (HTTPLoop) -> Void
    }

    private let monitor = Monitor()
    private var waiting: [Work] = []
    private let waker: HTTPWaker

    private static let instance = Result { () throws(HTTPClientError) in try HTTPThread() }

    /// The thread of this process.
    ///
    /// - Throws: `unavailable` when libcurl cannot be set up, or no thread can be made.
    package static func shared() throws(HTTPClientError) -> HTTPThread {
        try self.instance.get()
    }

    private init() throws(HTTPClientError) {
        // The client moves to the thread that is made below, and nobody else keeps it.
        let client = try HTTPClient()
        self.waker = client.waker
        let moved = Handover(client)
        do throws(ThreadFailure) {
            // Signals are for the threads that expect them.
            try NamedThread("network", signals: .blocked) { [self] in self.run(HTTPLoop(moved.take())) }
        } catch {
            throw HTTPClientError(.unavailable, "no thread can be made for the network; raise the limit of threads")
        }
    }

    /// Runs `work` on the thread, soon, and in the order of the calls.
    package func submit(_ work: @escaping @Sendable (HTTPLoop) -> Void) {
        self.monitor.lock()
        self.waiting.append(Work(run: work))
        let isFirst = self.waiting.count == 1
        self.monitor.unlock()
        if isFirst { self.waker.wake() }
    }

    /// Sends a request and waits for the whole answer.
    ///
    /// - Throws: `cancelled` when the task was, besides what becomes of requests.
    package func perform(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        let exchange = HTTPExchange()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.submit { exchange.begin(request, continuation, on: $0) }
            }
        } onCancel: {
            self.submit { exchange.cancel(on: $0) }
        }
        return try result.get()
    }

    /// Waits until `milliseconds` have passed, or the task is cancelled.
    package func wait(milliseconds: Int64) async {
        let alarm = HTTPAlarm()
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.submit { alarm.begin(milliseconds, continuation, on: $0) }
            }
        } onCancel: {
            self.submit { alarm.cancel(on: $0) }
        }
    }

    private func run(_ loop: HTTPLoop) {
        while true {
            var work: [Work] = []
            self.monitor.lock()
            swap(&work, &self.waiting)
            self.monitor.unlock()
            for work in work { work.run(loop) }
            loop.turn()
        }
    }
}
