import Foundation
import Glibc
import Testing

/// `FormerStates/make.py` documents the contents of the state directory.
@Suite("A state folder of 50ad6a39", .serialized, .timeLimit(.minutes(15)))
struct FormerStateTests {
    private typealias Object = [String: Any]

    private static let files = RunningGateway.root.appendingPathComponent("Tests/EndToEndTests/FormerStates")

    /// Returns the state folder of a process that was killed.
    private func unpacked() throws -> RestartFolder {
        let folder = try RestartFolder()
        try FileManager.default.createDirectory(
            at: folder.state,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        let archive = Self.files.appendingPathComponent("50ad6a39.tar.gz").path
        let ended = try ChildProcess.run("tar", ["-xzf", archive, "-C", folder.state.path])
        guard ended.status == 0 else { throw ChildProcess.Failure(description: ended.errors) }
        return folder
    }

    /// Returns the answers of that process shortly before it was killed.
    private func former() throws -> Object {
        let data = try Data(contentsOf: Self.files.appendingPathComponent("50ad6a39.json"))
        return try #require(try JSONSerialization.jsonObject(with: data) as? Object)
    }

    private func integer(_ object: Object?, _ path: String...) -> Int? {
        (Answer.value(at: path, in: object) as? NSNumber)?.intValue
    }

    @Test("Every count and device is restored, wakes in flight are lost, and payloads reach a worker")
    func restored() throws {
        let former = try self.former()
        let folder = try self.unpacked()
        // Any elapsed time and any clock are tolerated. No budget window has ended since.
        let settings = ["--set", "clockJumpMax=3155760000", "--set", "policy.budgetWindow=3155760000"]
        let gateway = try folder.start(settings)
        try self.checkCounts(gateway, former)
        try self.checkDevices(gateway, former)
        try self.checkContent(gateway, former)
        withExtendedLifetime(folder) {}
    }

    private func checkCounts(_ gateway: RunningGateway, _ former: Object) throws {
        let before = try #require(former["stats"] as? Object)
        let stats = try gateway.stats()
        for name in ["accepted", "noWake", "completed", "pending"] {
            #expect(stats.integer("pushes", name) == self.integer(before, "pushes", name), "\(name)")
        }
        // Of the two devices with a wake in flight, one had a newer push and the other had none.
        #expect(stats.integer("pushes", "inFlight") == 0 && self.integer(before, "pushes", "inFlight") == 1)
        #expect(stats.integer("pushes", "coalesced") == (self.integer(before, "pushes", "coalesced") ?? 0) + 1)
        for reason in ["expired", "exhausted", "forceQuit", "unregistered"] {
            let count = self.integer(before, "pushes", "discarded", reason)
            #expect(stats.integer("pushes", "discarded", reason) == count, "\(reason)")
        }
        for result in ["newData", "noData", "failed", "expired"] {
            let count = self.integer(before, "wakes", "results", result)
            #expect(stats.integer("wakes", "results", result) == count, "\(result)")
        }
        #expect(stats.integer("wakes", "results", "lost") == 2)
        #expect(stats.integer("wakes", "launched") == self.integer(before, "wakes", "launched"))
        #expect(stats.integer("devices", "registered") == self.integer(before, "devices", "registered"))
        #expect(stats.value("since") as? String == before["since"] as? String)
    }

    /// Expects that every device has the push, the conditions and the past that it had.
    private func checkDevices(_ gateway: RunningGateway, _ former: Object) throws {
        let devices = try #require(former["devices"] as? [String: Object])
        let pushes = try #require(former["pushes"] as? [String: String])
        #expect(devices.count == 13)
        for (token, before) in devices {
            let device = try gateway.admin("/v1/devices/\(token)")
            #expect(device.value("topic") as? String == before["topic"] as? String)
            // Conditions that the earlier version did not know have their default.
            let conditions = (before["conditions"] as? Object)?.merging(["memoryPressure": "normal"]) { $1 }
            #expect(device.part("conditions") == Answer.text(conditions), "\(token)")
            #expect(device.value("inFlight") is NSNull && device.integer("penalty") == self.integer(before, "penalty"))
            // If the wall clock is behind that of the recording, all times shift by the difference.
            let shift = (device.integer("registeredAt") ?? 0) - (self.integer(before, "registeredAt") ?? 0)
            let wasInFlight = before["inFlight"] is Object
            if !wasInFlight {
                let launchedAt = self.integer(before, "lastLaunchAt").map { $0 + shift }
                #expect(device.integer("lastLaunchAt") == launchedAt, "\(token)")
                #expect(device.integer("launchesInWindow") == self.integer(before, "launchesInWindow"), "\(token)")
            }
            guard before["pending"] is Object else {
                #expect(device.value("pending") is NSNull, "\(token)")
                continue
            }
            #expect(device.part("pending", "apnsID") == Answer.text((before["pending"] as? Object)?["apnsID"]))
            for name in ["receivedAt", "expiresAt"] + (wasInFlight ? [] : ["firstReceivedAt"]) {
                let moment = self.integer(before, "pending", name).map { $0 + shift }
                #expect(device.integer("pending", name) == moment && moment != nil, "\(name) of \(token)")
            }
            for name in ["priority", "attempts"] + (wasInFlight ? [] : ["coalesced"]) {
                let number = self.integer(before, "pending", name)
                #expect(device.integer("pending", name) == number && number != nil, "\(name) of \(token)")
            }
        }
        let flight = try gateway.admin("/v1/devices/\(String(repeating: "0c", count: 32))")
        #expect(flight.value("pending", "apnsID") as? String == pushes["behind it"])
        #expect(flight.integer("pending", "coalesced") == 1)
        let removed = try gateway.push(String(repeating: "0a", count: 32), topic: "com.example.quiet")
        #expect(removed.status == 410 && removed.reason == "Unregistered")
    }

    private func checkContent(_ gateway: RunningGateway, _ former: Object) throws {
        let pushes = try #require(former["pushes"] as? [String: String])
        let worker = try gateway.curlWorker(topic: "com.example.news")
        var wakes: [String: Object] = [:]
        for number in 1...3 {
            // The device may have been due already. Then its wake was launched to the worker on arrival.
            let token = String(repeating: "0\(number)", count: 32)
            let answer = try gateway.admin("/v1/devices/\(token)/simulate-launch", "-X", "POST")
            #expect(answer.status == 202 || answer.reason == "WakeInFlight")
            let wake = try #require(try worker.next())
            wakes[try #require(wake.data["apnsID"] as? String)] = wake.data
        }
        let newer = try #require(pushes["newer"].flatMap { wakes[$0] })
        #expect(newer["collapseID"] as? String == "edition" && newer["coalesced"] as? Int == 1)
        #expect((newer["payload"] as? Object)?["n"] as? Double == 1e30)
        let traced = try #require(pushes["traced"].flatMap { wakes[$0] })
        #expect(traced["traceparent"] as? String == "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        #expect(traced["tracestate"] as? String == "vendor=1" && traced["attempt"] as? Int == 1)
        #expect((traced["payload"] as? Object)?["text"] as? String == "Grüße\u{2028}")
        let failed = try #require(pushes["failed"].flatMap { wakes[$0] })
        #expect(failed["attempt"] as? Int == 2)
    }
}
