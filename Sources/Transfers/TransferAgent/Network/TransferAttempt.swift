import Glibc
package import HTTPClient
import Platform
package import Synchronization
package import Wire

/// One attempt at a transfer. It sends requests and follows redirects until all bytes are transferred or it fails.
///
/// `@unchecked Sendable`: used only on the `HTTPThread`.
package final class TransferAttempt: HTTPAgent, HTTPBodySink, @unchecked Sendable {
    package typealias Report = @Sendable (AttemptNews) -> Void

    /// The decision about an answer, made when its head arrives.
    private enum Verdict {
        case none
        /// Accept the body: it is the requested entity or part.
        case take
        case redirect(String)
        /// The existing part belongs to another entity. The whole entity must be requested.
        case restart
        /// The file was already complete before this request.
        case complete
        case refused
        case fault(TransferFault)
    }

    package let plan: AttemptPlan
    package let gauge = AttemptGauge()
    private let files: StateFiles
    private let space: StateFiles.Claim
    private let worker: FileWorker
    private let network: HTTPThread
    private let report: Report
    private var url: String
    private var method: String
    private var sendsBody: Bool
    private var redirects = 0
    private var restarts = 0
    private var request: HTTPRequestID?
    private var writing: StateFiles.Writing?
    private var source: UploadSource?
    private var body: HTTPFileBody?
    /// The fault of the file that is sent.
    private var sourceFault: TransferFault?
    /// The offset of the bytes of the file for which the attempt waits.
    private var awaitedOffset: Int64? {
        didSet { self.gauge.awaitsFile.store(self.awaitedOffset != nil, ordering: .relaxed) }
    }
    private let cookies = HTTPCookies()
    private var validator: String?
    private var total: Int64 = -1
    /// The end of the part in a 206 answer, as an offset in the file; nil for any other answer.
    private var partEnd: Int64?
    private var bytes: Int64 = 0
    private var firstByte: Int64 = 0
    private var syncedBytes: Int64 = 0
    private var discardedBytes = 0
    private var verdict = Verdict.none
    private var isOver = false

    /// The number of bytes after which the file is synced. It limits the loss in a power failure.
    private static let syncEvery: Int64 = 64 << 20
    /// The maximum number of bytes to read of an unwanted body. A connection can be reused only if the whole body was
    /// read.
    private static let discardedBytesMax = 65_536
    private static let restartsMax = 2

    package init(
        _ plan: AttemptPlan,
        files: StateFiles,
        worker: FileWorker,
        network: HTTPThread,
        report: @escaping Report
    ) {
        self.plan = plan
        self.network = network
        self.files = files
        self.space = StateFiles.Claim(in: files)
        self.worker = worker
        self.report = report
        self.url = plan.spec.url
        self.method = plan.spec.method ?? (plan.kind == .upload ? "PUT" : "GET")
        self.sendsBody = plan.kind == .upload
    }

    // MARK: Begin and end

    package func begin(on loop: HTTPLoop) {
        guard !self.isOver else { return }
        switch self.plan.kind {
        case .download:
            self.resume()
            if self.writing != nil, self.bytes == self.total {
                // The agent ended between the last byte and the end of the transfer.
                return self.finish(status: 200)
            }
            self.send(on: loop)
        case .upload: self.open()
        }
    }

    /// Ends the attempt without a report.
    package func stop(on loop: HTTPLoop) {
        self.isOver = true
        if let request = self.request { loop.cancel(request) }
        self.release()
    }

    private func end(_ news: AttemptNews) {
        guard !self.isOver else { return }
        self.isOver = true
        if let source = self.source {
            // While a file does not respond, its transfer must not begin more attempts, each with another thread.
            source.perform { [report] _ in report(news) }
        } else {
            self.report(news)
        }
        self.release()
    }

    private func release() {
        self.request = nil
        self.writing = nil
        self.space.release()
        self.body = nil
        self.source?.close()
        self.source = nil
    }

    /// Continues with the part from earlier attempts if the part has a validator.
    private func resume() {
        guard let part = self.plan.part, let validator = part.validator else { return }
        guard let writing = try? self.files.reopen(part) else { return }
        guard writing.offset > 0, part.total < 0 || writing.offset <= part.total else { return }
        self.writing = writing
        self.validator = validator
        self.total = part.total
        self.bytes = writing.offset
        self.firstByte = writing.offset
        self.syncedBytes = min(part.synced, writing.offset)
        // All remaining bytes are durable, so later attempts may trust what this one adds.
        if part.boot != self.files.boot { self.report(.synced(file: part.file, bytes: writing.offset)) }
        self.show()
    }

    /// Opens the file of an upload, and then sends it.
    private func open() {
        do throws(TransferFault) {
            let source = try UploadSource(self.plan.spec.file ?? "", in: self.files)
            self.source = source
            self.awaitedOffset = 0
            source.perform { [network] source in
                let size = source.open()
                network.submit { self.opened(source, size, on: $0) }
            }
        } catch {
            self.fail(error)
        }
    }

    private func opened(_ source: UploadSource, _ size: Result<Int64, TransferFault>, on loop: HTTPLoop) {
        guard !self.isOver else { return }
        self.awaitedOffset = nil
        switch size {
        case .success(let size) where size > self.plan.bytesMax: self.fail(.tooLarge(bytesMax: self.plan.bytesMax))
        case .failure(let fault): self.fail(fault)
        case .success(let size):
            self.total = size
            let (gauge, network) = (self.gauge, self.network)
            self.body = HTTPFileBody(byteCount: size) { offset in
                self.awaitedOffset = offset
                source.perform { source in
                    let bytes = source.bytes(at: offset)
                    network.submit { self.supply(bytes, at: offset, on: $0) }
                }
            } onProgress: { sent in
                gauge.bytes.store(sent, ordering: .relaxed)
            }
            self.show()
            self.send(on: loop)
        }
    }

    private func supply(_ bytes: Result<[UInt8], TransferFault>, at offset: Int64, on loop: HTTPLoop) {
        if offset == self.awaitedOffset { self.awaitedOffset = nil }
        guard let request = self.request else { return }
        if case .failure(let fault) = bytes { self.sourceFault = fault }
        loop.supply((try? bytes.get()) ?? [], at: offset, to: request)
    }

    private func show() {
        self.gauge.first.store(self.firstByte, ordering: .relaxed)
        self.gauge.bytes.store(self.bytes, ordering: .relaxed)
        self.gauge.total.store(self.total, ordering: .relaxed)
    }

    // MARK: Requests

    private func send(on loop: HTTPLoop) {
        guard HTTPURL(self.url) != nil else {
            let shown = Redirection.forLogs(self.url)
            return self.end(.failed(.forbiddenProtocol(shown), hasProgressed: false))
        }
        let isOwn = self.redirects == 0 || Redirection.isSameOrigin(self.url, self.plan.spec.url)
        var headers = self.plan.spec.headers.filter { header in
            isOwn || !Redirection.isSecret(header.name)
        }.map { (name: $0.name, value: $0.value) }
        if !headers.contains(where: { $0.name.lowercased() == "user-agent" }) {
            headers.append(("user-agent", "WakeGate"))
        }
        if !self.wantsCoding { headers.append(("accept-encoding", "identity")) }
        // Many servers refuse a POST without a length (411).
        if self.method == "POST", !self.sendsBody { headers.append(("content-length", "0")) }
        if self.writing != nil, self.bytes > 0, let validator = self.validator {
            headers.append(("range", "bytes=\(self.bytes)-"))
            headers.append(("if-range", validator))
        }
        var request = HTTPRequest(
            self.method,
            self.url,
            headers: headers,
            timeoutMilliseconds: nil,
            isStreaming: true
        )
        request.sink = self
        request.cookies = self.cookies
        request.silenceSecondsMax = self.plan.silenceSecondsMax
        request.settings = self.plan.settings
        if self.sendsBody { request.file = self.body }
        self.verdict = .none
        self.partEnd = nil
        self.discardedBytes = 0
        self.awaitedOffset = nil
        do throws(HTTPClientError) {
            self.request = try loop.start(request, for: self)
        } catch {
            self.end(.failed(self.fault(of: error), hasProgressed: false))
        }
    }

    package func momentReached(on loop: HTTPLoop) {}

    package func received(_ event: HTTPEvent, on loop: HTTPLoop) {
        guard !self.isOver, case .ended(_, let result) = event else { return }
        self.request = nil
        switch (self.verdict, result) {
        case (.redirect(let location), _): self.follow(location, on: loop)
        case (.restart, _):
            self.restarts += 1
            guard self.restarts <= Self.restartsMax else {
                let words = "it has fewer bytes than it announced, or another range than was asked for"
                return self.end(.failed(.wrongLength(words), hasProgressed: false))
            }
            self.writing = nil
            self.bytes = 0
            self.firstByte = 0
            self.total = -1
            self.send(on: loop)
        case (.complete, _):
            self.total = self.bytes
            self.finish(status: 200)
        case (.fault(let fault), _): self.fail(fault)
        case (.refused, .success(let response)):
            self.fail(.status(response.status, retryAfterSeconds: response.retryAfterSeconds))
        case (.refused, .failure(let error)):
            let status = self.gauge.status.load(ordering: .relaxed)
            self.fail(.status(status, retryAfterSeconds: error.retryAfterSeconds))
        case (.take, .success(let response)): self.bodyEnded(response.status, unsentBytes: response.unsentBytes)
        case (.take, .failure) where self.hasBeenAnswered: self.bodyEnded(self.gauge.status.load(ordering: .relaxed))
        case (.take, .failure(let error)) where self.plan.kind == .download: self.fail(self.cut(self.fault(of: error)))
        case (.none, .success(let response)): self.fail(.connectionFailed("no head came with \(response.status)"))
        case (_, .failure(let error)): self.fail(self.fault(of: error))
        }
    }

    private var isRefused: Bool {
        if case .refused = self.verdict { return true }
        return false
    }

    private func fail(_ fault: TransferFault) {
        self.end(.failed(fault, hasProgressed: self.plan.kind == .download && self.bytes > self.plan.bytesBefore))
    }

    private func follow(_ location: String, on loop: HTTPLoop) {
        self.redirects += 1
        guard self.redirects <= Redirection.countMax else {
            return self.fail(.tooManyRedirects(Redirection.countMax))
        }
        let status = self.gauge.status.load(ordering: .relaxed)
        guard let next = Redirection.target(location, at: self.url, of: self.plan.spec.url) else {
            return self.fail(.forbiddenProtocol(Redirection.forLogs(location)))
        }
        let method = Redirection.method(after: status, of: self.method)
        if method != self.method { self.sendsBody = false }
        self.method = method
        self.url = next
        self.send(on: loop)
    }

    /// Returns the fault for an answer that was interrupted.
    private func cut(_ fault: TransferFault) -> TransferFault {
        guard case .connectionFailed(let words) = fault else { return fault }
        return .answerCut(bytes: self.bytes, total: self.total, words)
    }

    private func fault(of error: HTTPClientError) -> TransferFault {
        let words = error.detail.isEmpty ? error.message : "\(error.message): \(error.detail)"
        switch error.code {
        case .untrusted where words.lowercased().contains("certificate"): return .certificate(words)
        case .badCredentials, .badRequest: return .interrupted(words)
        case .timedOut where self.awaitedOffset != nil: return .unresponsive(self.plan.spec.file)
        case .timedOut: return .connectionFailed("no byte came in time")
        case .unreachable, .untrusted, .broken, .tooLarge, .headTooLarge, .refusedAddress, .unavailable, .cancelled:
            return self.sourceFault ?? .connectionFailed(words)
        }
    }
}

// MARK: - Receiving

extension TransferAttempt {
    package func headReceived(_ response: HTTPResponse) -> Bool {
        guard !self.isOver else { return false }
        let status = response.status
        self.gauge.status.store(status, ordering: .relaxed)
        if Redirection.isRedirect(status), let location = response.header("location") {
            self.verdict = .redirect(location)
        } else if self.plan.kind == .upload {
            self.verdict = (200..<300).contains(status) ? .take : .refused
        } else if self.writing != nil, self.bytes > 0, status == 206 || status == 416 {
            self.verdict = status == 206 ? self.resumed(response) : self.unsatisfied(response)
        } else if status == 206 {
            self.verdict = .fault(.wrongLength("a part came where all was asked for"))
        } else if (200..<300).contains(status) {
            self.verdict = self.coded(response) ?? self.entityBegan(response)
        } else {
            self.verdict = .refused
        }
        switch self.verdict {
        case .none, .take, .redirect, .refused: return true
        case .restart, .complete, .fault: return false
        }
    }

    /// True if the headers of the transfer request a content coding.
    private var wantsCoding: Bool { self.plan.spec.headers.contains { $0.name.lowercased() == "accept-encoding" } }

    /// Returns the fault for a body in a content coding that was not requested; nil for any other answer.
    private func coded(_ response: HTTPResponse) -> Verdict? {
        guard !self.wantsCoding, let coding = response.header("content-encoding"), coding.lowercased() != "identity",
            !coding.isEmpty
        else { return nil }
        return .fault(.unrequestedCoding(String(coding.prefix(64))))
    }

    /// Checks the head of an answer that should continue the existing part.
    private func resumed(_ response: HTTPResponse) -> Verdict {
        guard let range = ContentRange(response.header("content-range") ?? ""), range.first == self.bytes,
            range.total == nil || self.total < 0 || range.total == self.total,
            self.total < 0 || range.last < self.total,
            EntityValidator.isSame(self.validator, in: response),
            let length = EntityLength.announced(in: response), length < 0 || length == range.last - range.first + 1
        else { return .restart }
        if let fault = self.coded(response) { return fault }
        if let total = range.total { self.total = total }
        self.partEnd = range.last + 1
        self.show()
        return self.check(self.total)
    }

    /// Handles a 416 answer. Either the file is complete, the server announced a greater length before, or the entity
    /// has changed.
    private func unsatisfied(_ response: HTTPResponse) -> Verdict {
        guard let length = ContentRange.wholeLength(response.header("content-range") ?? ""), length == self.bytes,
            !EntityValidator.isOther(self.validator, in: response)
        else { return .restart }
        guard self.total > length else { return .complete }
        return .fault(.wrongLength("\(self.total) bytes were announced, and there are \(length)"))
    }

    private func entityBegan(_ response: HTTPResponse) -> Verdict {
        guard let length = EntityLength.announced(in: response) else {
            let shown = response.header("content-length") ?? ""
            return .fault(.wrongLength("content-length is \"\(shown.prefix(64))\", which is not a length"))
        }
        self.total = length
        // The bytes of earlier attempts belong to another entity, or nothing shows that they do not. Their space may be
        // needed. The store may still name their file: without it, a later attempt begins anew.
        if let obsolete = self.writing?.name ?? self.plan.part?.file { self.files.remove(obsolete) }
        self.writing = nil
        self.bytes = 0
        self.firstByte = 0
        self.syncedBytes = 0
        let verdict = self.check(self.total)
        guard case .take = verdict else { return verdict }
        self.validator = EntityValidator.of(response)
        // Each entity gets another file name. Stored data therefore never refers to the bytes of another entity.
        let name = self.restarts == 0 ? self.plan.freshFile : "\(self.plan.freshFile).\(self.restarts)"
        do throws(SystemError) {
            self.writing = try self.files.create(name)
        } catch {
            return .fault(StateFiles.fault(error, missing: self.files.missing(for: max(0, self.total))))
        }
        self.show()
        let part = PartFile(
            file: name,
            validator: self.validator,
            total: self.total,
            synced: 0,
            boot: self.files.boot
        )
        self.report(.began(part))
        return .take
    }

    /// Checks that the total size is permitted, and claims space for the remaining bytes.
    private func check(_ total: Int64) -> Verdict {
        if total > self.plan.bytesMax { return .fault(.tooLarge(bytesMax: self.plan.bytesMax)) }
        let remaining = max(0, total - self.bytes)
        let missing = self.space.claim(remaining)
        return missing > 0 ? .fault(self.space.fault(missing: missing, of: remaining)) : .take
    }

    package func bodyReceived(_ bytes: ByteView) -> Bool {
        guard case .take = self.verdict, let writing = self.writing else {
            self.discardedBytes += bytes.count
            if self.discardedBytes <= Self.discardedBytesMax { return true }
            // An answer before the end of the upload must not end the upload.
            return self.plan.kind == .upload && !self.hasBeenAnswered && !self.isRefused
        }
        guard self.bytes + Int64(bytes.count) <= self.plan.bytesMax else {
            self.verdict = .fault(.tooLarge(bytesMax: self.plan.bytesMax))
            return false
        }
        guard self.bytes + Int64(bytes.count) <= self.partEnd ?? .max else {
            self.verdict = .restart
            return false
        }
        let missing = self.space.missing(for: bytes.count)
        guard missing == 0 else {
            self.verdict = .fault(self.space.fault(missing: missing, of: Int64(bytes.count)))
            return false
        }
        do throws(SystemError) {
            try writing.write(bytes)
        } catch {
            let missing = max(self.total - self.bytes, Int64(bytes.count))
            self.verdict = .fault(StateFiles.fault(error, missing: missing))
            return false
        }
        self.space.used(bytes.count)
        self.bytes += Int64(bytes.count)
        self.gauge.bytes.store(self.bytes, ordering: .relaxed)
        if self.bytes - self.syncedBytes >= Self.syncEvery { self.syncSoon(writing) }
        return true
    }

    /// Syncs the written bytes on another thread.
    private func syncSoon(_ writing: StateFiles.Writing) {
        let bytes = self.bytes
        self.syncedBytes = bytes
        let (files, report) = (self.files, self.report)
        self.worker.submit {
            do throws(SystemError) {
                try writing.sync()
                report(.synced(file: writing.name, bytes: bytes))
            } catch {
                // Some bytes may be lost. No attempt continues a file that is missing, even if this one has ended.
                files.remove(writing.name)
            }
            return false
        }
    }

    /// True if an upload was sent completely and only the last part of a long answer is unread.
    private var hasBeenAnswered: Bool {
        self.plan.kind == .upload && self.discardedBytes > Self.discardedBytesMax
            && self.gauge.bytes.load(ordering: .relaxed) == self.total
    }

    private func bodyEnded(_ status: Int, unsentBytes: Int64 = 0) {
        guard self.plan.kind == .download else { return self.sent(status, unsentBytes) }
        guard self.bytes == self.partEnd ?? self.bytes, self.total < 0 || self.bytes == self.total else {
            return self.fail(self.cut(.connectionFailed("it ended before the length that it announced")))
        }
        // A part without a total length may be the last part. To find out, the next attempt requests the bytes after
        // it.
        guard self.partEnd == nil || self.total >= 0 else {
            return self.fail(self.cut(.connectionFailed("the server did not say how long the file is")))
        }
        self.finish(status: status)
    }

    /// Handles an answer with success to an upload.
    private func sent(_ status: Int, _ unsentBytes: Int64) {
        // After a redirect, the request may have no body.
        let unsent = self.sendsBody ? unsentBytes : 0
        guard unsent == 0 || self.plan.acceptsEarlyAnswers else {
            return self.fail(.serverStoppedReading(sent: self.total - unsent, total: self.total))
        }
        let news = AttemptNews.succeeded(bytes: self.total - unsent, status: status, sha256: nil)
        self.isOver = true
        self.source?.perform { [report] source in
            report(source.change.map { .failed($0, hasProgressed: false) } ?? news)
        }
        self.release()
    }

    /// Syncs and verifies the file, and then reports the result.
    private func finish(status: Int) {
        guard let writing = self.writing else {
            return self.fail(.fileUnwritable("the file is missing"))
        }
        let bytes = self.bytes
        let report = self.report
        let look = FileVerification(writing, bytes: bytes, sha256: self.plan.spec.sha256, in: self.files)
        self.isOver = true
        self.worker.submit {
            switch look.step() {
            case .whole(let found)?: report(.succeeded(bytes: bytes, status: status, sha256: found))
            case .fault(let fault)?: report(.failed(fault, hasProgressed: false))
            case nil: return true
            }
            return false
        }
        self.release()
    }
}

/// The parameters of one attempt at a transfer.
package struct AttemptPlan: Sendable {
    package let id: TransferID
    package let kind: TransferKind
    package let spec: TransferSpec
    /// The part from earlier attempts; nil if there is none.
    package let part: PartFile?
    /// The file name to use for a new entity.
    package let freshFile: String
    package let bytesMax: Int64
    /// The number of bytes that earlier attempts have reached. Only bytes after these count as progress.
    package let bytesBefore: Int64
    /// The maximum time without a byte, in whole seconds.
    package let silenceSecondsMax: Int
    /// True if an upload succeeds with an answer that the server sent before it had read the whole file.
    package let acceptsEarlyAnswers: Bool
    package let settings: HTTPClientSettings
}

/// The progress of an attempt. Any thread may read it.
package final class AttemptGauge: Sendable {
    package let bytes = Atomic<Int64>(0)
    package let total = Atomic<Int64>(-1)
    package let status = Atomic<Int>(0)
    /// The number of bytes that were transferred before the attempt.
    package let first = Atomic<Int64>(0)
    /// True while an upload waits for bytes of its file.
    package let awaitsFile = Atomic<Bool>(false)

    package init() {}
}

/// An event of an attempt. Each new entity begins with `began`; `synced` may come several times. The last event is
/// `succeeded` or `failed`.
package enum AttemptNews: Sendable {
    /// The transfer of an entity to this file has begun. The file of an earlier entity is no longer needed.
    case began(PartFile)
    /// The first `bytes` bytes of the file are durable.
    case synced(file: String, bytes: Int64)
    /// The transfer is complete. The file of a download is verified and durable.
    case succeeded(bytes: Int64, status: Int, sha256: String?)
    case failed(TransferFault, hasProgressed: Bool)
}
