import Foundation
import Glibc
import Testing

@Suite("A worker reports the conditions of its machine", .serialized, .timeLimit(.minutes(15)))
struct ConditionsReportTests {
    private let topic = "com.example.conditions"
    private let token = String(repeating: "c0", count: 32)

    @Test("The machine's conditions are reported at the start, on each change, and after a reconnection")
    func report() throws {
        let gateway = try RunningGateway()
        try self.register(gateway)
        try self.write(gateway, "power_supply/BAT0/type", "Battery")
        try self.write(gateway, "power_supply/BAT0/status", "Discharging")
        try self.write(gateway, "power_supply/BAT0/capacity", "7")
        try self.write(gateway, "thermal/thermal_zone0/temp", "85000")
        try self.write(gateway, "thermal/thermal_zone0/trip_point_0_type", "passive")
        try self.write(gateway, "thermal/thermal_zone0/trip_point_0_temp", "80000")
        try self.write(gateway, "../../proc/pressure/memory", "some avg10=50.00 avg60=0\nfull avg10=20.00 avg60=0")
        let worker = try self.worker(gateway)
        try self.eventually(gateway, "batteryLevel") { $0 as? Double == 0.07 }
        try self.eventually(gateway, "memoryPressure") { $0 as? String == "critical" }
        try self.eventually(gateway, "charging") { $0 as? Bool == false }
        try self.eventually(gateway, "thermalState") { $0 as? String == "serious" }
        // The condition holds a push, as on a phone.
        #expect(try gateway.push(self.token, topic: self.topic).headers["wakegate-held"] == "thermal")
        // Conditions without kernel events are polled, so changes are reported without a restart of the worker.
        try self.write(gateway, "thermal/thermal_zone0/temp", "40000")
        try self.write(gateway, "power_supply/BAT0/capacity", "90")
        try self.eventually(gateway, "thermalState") { $0 as? String == "nominal" }
        try self.eventually(gateway, "batteryLevel") { $0 as? Double == 0.9 }
        try gateway.eventually("a result") { try gateway.results("newData") == 1 }
        #expect(try worker.process.end().status == 0)
    }

    @Test("The network is reported by the kernel's default route and its link")
    func network() throws {
        guard geteuid() == 0 else { return }
        let socket = FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-\(UUID()).sock").path
        defer { try? FileManager.default.removeItem(atPath: socket) }
        let gateway = try RunningGateway(["--plain", "unix:\(socket)"])
        try self.register(gateway)
        // Its own network namespace has only a loopback interface, which is down.
        let worker = try self.worker(gateway, ["--gateway", "unix:\(socket)"], under: ["unshare", "--net"])
        try self.eventually(gateway, "network") { $0 as? Bool == false }
        let inside = ["--net=/proc/\(worker.process.identifier)/ns/net"]
        func ip(_ command: String) throws {
            let words = command.split(separator: " ").map(String.init)
            let ended = try ChildProcess.run("nsenter", inside + ["ip"] + words)
            try #require(ended.status == 0, "ip \(command): \(ended.errors)")
        }
        for command in ["link add out type veth peer name far", "link set out up", "route add default dev out"] {
            try ip(command)
        }
        // First, the other end of the cable is not plugged in. Then it is.
        try self.eventually(gateway, "network") { $0 as? Bool == false }
        try ip("link set far up")
        try self.eventually(gateway, "network") { $0 as? Bool == true }
        try ip("link set far down")
        try self.eventually(gateway, "network") { $0 as? Bool == false }
        try ip("link set far up")
        try self.eventually(gateway, "network") { $0 as? Bool == true }
        try ip("route del default")
        try self.eventually(gateway, "network") { $0 as? Bool == false }
    }

    @Test("An unknown device is named")
    func faults() throws {
        let gateway = try RunningGateway(["--set", "registration=\"explicit\""])
        let worker = try self.worker(gateway)
        try worker.says("the conditions of device \(self.token): the gateway answered 404")
    }

    private func register(_ gateway: RunningGateway) throws {
        #expect(try gateway.wakegate("device", "register", self.token, "--topic", self.topic).status == 0)
    }

    private func write(_ gateway: RunningGateway, _ path: String, _ text: String) throws {
        let file = gateway.folder.appendingPathComponent("machine/sys/class/\(path)")
        let folder = file.deletingLastPathComponent()
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data("\(text)\n".utf8).write(to: file)
    }

    private func worker(
        _ gateway: RunningGateway,
        _ more: [String] = [],
        under launcher: [String] = []
    ) throws -> WorkerProcess {
        let options = ["--report-conditions", "--device", self.token, "--system-root", "machine"] + more
        return try WorkerProcess(gateway, topic: self.topic, options, script: "exit 0", under: launcher)
    }

    /// Polls until the gateway reports the wanted value of a condition.
    private func eventually(_ gateway: RunningGateway, _ name: String, _ isWanted: (Any?) -> Bool) throws {
        try gateway.eventually(name) {
            let conditions = try gateway.admin("/v1/devices/\(self.token)").value("conditions") as? [String: Any]
            return isWanted(conditions?[name])
        }
    }
}
