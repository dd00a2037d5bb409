import Foundation
import Glibc
import Testing

@Suite("A gateway with a full disk", .serialized, .timeLimit(.minutes(15)))
struct FailingDiskTests {
    private let topic = "com.example.disk"

    /// Runs a program with a file size limit of half a mebibyte. With a lower limit, the thread sanitizer would crash,
    /// because it creates a file of that size.
    private static let limited = ["bash", "-c", #"ulimit -f 512; exec "$@""#, "limited"]

    private static func token(_ number: Int) -> String { String(format: "%064x", number) }

    @Test("On a full disk pushes and results are refused, questions are answered, and a restart loses nothing")
    func fullDisk() throws {
        let folder = try RestartFolder()
        let gateway = try folder.start(["--set", "drainTimeout=600"], under: Self.limited)
        var accepted: [String: String] = [:]
        // A wake is in flight, whose result the store cannot keep.
        let worker = try gateway.curlWorker(topic: "\(self.topic).flight")
        let inFlight = try gateway.push(Self.token(5000), topic: "\(self.topic).flight")
        accepted[Self.token(5000)] = inFlight.headers["apns-id"]
        let wake = try #require(try worker.next()?.id)
        var refusal: Answer?
        for number in 0..<2000 where refusal == nil {
            let pushed = try gateway.push(Self.token(number), topic: self.topic)
            if pushed.status == 200 {
                accepted[Self.token(number)] = pushed.headers["apns-id"]
            } else {
                refusal = pushed
            }
        }
        let refused = try #require(refusal, "the disk never failed")
        #expect(refused.status == 503)
        #expect(refused.reason == "ServiceUnavailable")
        #expect(refused.headers["retry-after"] != nil)
        #expect(accepted.count > 3)

        let ready = try gateway.admin("/readyz")
        #expect(ready.status == 503)
        #expect((ready.value("message") as? String)?.contains(folder.journal.path) == true, "\(ready.body)")
        #expect((ready.value("message") as? String)?.contains("524288 bytes at most") == true, "\(ready.body)")
        #expect(try gateway.admin("/healthz").status == 200)
        #expect(try gateway.push(Self.token(0), topic: self.topic).status == 503)
        #expect(try gateway.edge("/v1/wakes/\(wake)", "-d", #"{"result":"noData"}"#).status == 503)
        #expect(try gateway.edge("/v1/topics/\(self.topic)/wakes?slots=1").status == 503)
        let stats = try gateway.stats()
        #expect(stats.status == 200)
        #expect(stats.integer("pushes", "accepted") == accepted.count)
        let places = [stats.integer("pushes", "pending"), stats.integer("pushes", "inFlight")]
        #expect(places.compactMap(\.self).reduce(0, +) == accepted.count)
        #expect(stats.integer("pushes", "rejected", "ServiceUnavailable") == 2)
        #expect(try gateway.admin("/v1/devices/\(Self.token(0))").status == 200)
        try gateway.eventually("a line in the log") { gateway.process.errors.contains("error storeFailed") }
        #expect(try gateway.process.end(SIGTERM).status == 1)
        #expect(!gateway.process.errors.contains("drainTimedOut"), "it does not wait for the result")

        let next = try folder.start()
        for (token, id) in accepted {
            let device = try next.admin("/v1/devices/\(token)")
            #expect(device.value("pending", "apnsID") as? String == id, "\(token)")
        }
        // The refused push may be present. Then it counts once.
        let found = try #require(try next.stats().integer("pushes", "accepted"))
        #expect((accepted.count...accepted.count + 1).contains(found))
        #expect(try next.admin("/readyz").status == 200)
        #expect(try next.push(Self.token(0), topic: self.topic).status == 200)
    }

    @Test("Starting where nothing more can be written ends with 1, the file and the remedy, and loses nothing")
    func fullAtStart() throws {
        let folder = try RestartFolder()
        let gateway = try folder.start()
        let log = folder.journal.path + "-wal"
        var count = 0
        // The next start must append to the existing log.
        while try Self.size(of: log) < 600_000 {
            count += 1
            #expect(count < 500)
            #expect(try gateway.push(Self.token(count), topic: self.topic).status == 200)
        }
        try gateway.process.end(SIGKILL)
        let command = [RunningGateway.program, "dev", "--edge", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
        let ended = try ChildProcess.run(
            Self.limited[0],
            Array(Self.limited.dropFirst()) + command,
            folder: folder.folder
        )
        #expect(ended.status == 1)
        #expect(ended.errors.contains(folder.journal.path), "\(ended.errors)")
        #expect(ended.errors.contains("start WakeGate again"), "\(ended.errors)")
        #expect(ended.output.isEmpty)
        let next = try folder.start()
        #expect(try next.stats().integer("pushes", "accepted") == count)
        #expect(try next.push(Self.token(0), topic: self.topic).status == 200)
    }

    private static func size(of path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return (attributes[.size] as? NSNumber)?.intValue ?? 0
    }
}
