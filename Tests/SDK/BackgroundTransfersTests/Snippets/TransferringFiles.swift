import BackgroundTransfers
import Foundation
import WakeWorker

// Each snippet of the article stands here once more, where it compiles; a test compares the two.

// snippet: download
func fetchFilm() async throws {
    let session = try BackgroundSession("com.example.app.downloads")
    try await session.download(from: "https://example.com/film.mp4", to: "/srv/films/film.mp4")
}
// end

// snippet: configuration
func makeSession(device: String) throws -> BackgroundSession {
    var configuration = BackgroundSessionConfiguration()
    configuration.wakes(device: device, topic: "com.example.app")
    configuration.isDiscretionary = true
    configuration.allowsMetered = false
    configuration.requestTimeout = .seconds(30)
    configuration.resourceTimeout = .seconds(24 * 3600)
    configuration.connectionsPerHost = 4
    return try BackgroundSession("com.example.app.downloads", configuration)
}
// end

// snippet: add
func addFilms(_ session: BackgroundSession, _ films: [Film], token: String) async throws {
    for film in films {
        var request = BackgroundTransferRequest.download(film.url)
        request.headers["authorization"] = "Bearer \(token)"
        request.sha256 = film.sha256
        request.bytesMax = 8 << 30
        request.resourceTimeout = .seconds(12 * 3600)
        request.note = "/srv/films/\(film.name)"
        try await session.add(request)
    }
}
// end

// snippet: upload
func sendLog(_ session: BackgroundSession) async throws {
    var request = BackgroundTransferRequest.upload("/srv/log.gz", to: "https://example.com/logs/7")
    request.earliestBegin = Date(timeIntervalSinceNow: 3600)
    let id = try await session.add(request)
    let transfer = try await session.wait(for: id)
    log("the server answered \(transfer.httpStatus ?? 0)")
}
// end

// snippet: events
func follow(_ session: BackgroundSession) async throws {
    for try await event in session.events {
        switch event {
        case .progress(let progress): show(progress.transfer, progress.fraction ?? 0)
        case .finished(let transfer): try await session.take(transfer.id, to: transfer.note ?? "\(transfer.id)")
        case .failed(let transfer): log("\(transfer.url): \(transfer.failure?.message ?? "")")
        case .idle: return
        default: break
        }
    }
}
// end

// snippet: wake
func runWorker(_ worker: WakeWorker) async throws {
    try worker.backgroundTask(.urlSession("com.example.app.downloads")) { context in
        let session = try BackgroundSession(context.identifier)
        for transfer in try await session.finishedDownloads() {
            try await session.take(transfer.id, to: transfer.note ?? "/srv/films/\(transfer.id)")
        }
    }
    try await worker.runTasks()
}
// end

// snippet: list
func explain(_ session: BackgroundSession) async throws {
    for transfer in try await session.transfers(in: .waiting) {
        log("\(transfer.url): \(transfer.why ?? "")")
        if transfer.hold == .metered { try await session.cancel(transfer.id, keep: true) }
    }
}
// end

// snippet: errors
func fetchOrExplain(_ session: BackgroundSession) async throws {
    do throws(BackgroundTransferError) {
        try await session.download(from: "https://example.com/film.mp4", to: "/srv/films/film.mp4")
    } catch {
        switch error.code {
        case .transferFailed where error.transfer?.failure?.reason == .badChecksum: log("the file is damaged")
        case .noAgent, .notPermitted: log(error.message)
        default: throw error
        }
    }
}
// end

// What the snippets take for granted.

struct Film {
    let url: String
    let name: String
    let sha256: String
}

private func show(_ transfer: BackgroundTransferID, _ fraction: Double) {}

private func log(_ line: String) {}
