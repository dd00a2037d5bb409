import Foundation
import Glibc
import Testing
import WakeGateTestKit

@Suite("A worker reports whether its machine is in use", .serialized, .timeLimit(.minutes(15)))
struct AppStateTests {
    private let topic = "com.example.use"
    private let token = String(repeating: "a5", count: 32)

    @Test("Idle, in use and idle again reach the gateway, which launches immediately while it is in use")
    func use() throws {
        let gateway = try RunningGateway()
        let bus = try self.bus(gateway)
        let worker = try self.worker(gateway, ["--report-app-state"])
        try self.conditions(gateway, "batteryLevel=0.05", "charging=false")
        #expect(try gateway.push(self.token, topic: self.topic).headers["wakegate-held"] == "battery")
        try bus.tell("active")
        try self.eventually(gateway, "active")
        // The held push launches, because an app that is in use is not subject to the policy.
        try gateway.eventually("a result") { try gateway.results("newData") == 1 }
        try bus.tell("idle")
        try self.eventually(gateway, "background")
        #expect(try gateway.push(self.token, topic: self.topic).headers["wakegate-held"] == "battery")
        // The caller reports the battery; this worker reports only appState.
        #expect(try self.known(gateway, "batteryLevel") as? Double == 0.05)
        let ended = try worker.process.end()
        #expect(ended.status == 0 && !ended.errors.contains("appState"))
    }

    @Test("When logind is gone a machine counts as not in use, and the reason is logged once")
    func gone() throws {
        let gateway = try RunningGateway()
        let bus = try self.bus(gateway)
        try bus.tell("active")
        let worker = try self.worker(gateway, ["--report-app-state", "--report-conditions"])
        try self.eventually(gateway, "active")
        try bus.tell("leave")
        try self.eventually(gateway, "background")
        try worker.says("appState is not reported: logind does not tell the IdleHint of seat0: ")
        #expect(worker.process.errors.components(separatedBy: "appState is not reported").count == 2)
    }

    @Test("An appState reported by an SDK caller replaces that of logind")
    func caller() throws {
        let gateway = try RunningGateway()
        #expect(try gateway.wakegate("device", "register", self.token, "--topic", SDKWorker.topic).status == 0)
        let bus = try LoginBus(root: self.root(gateway))
        let worker = try SDKWorker(
            "https://\(gateway.edge)",
            authority: gateway.certificateAuthority,
            isInputOpen: true,
            commands: ["machine \(self.token) \(self.root(gateway).path) appState"]
        )
        try bus.tell("active")
        try self.eventually(gateway, "active")
        try worker.process.write("app \(self.token) forceQuit")
        #expect(try worker.wait(for: "answer").text("app") == "forceQuit")
        let asked = try bus.asked()
        for command in ["idle", "active", "idle"] { try bus.tell(command) }
        // Only the new report queries logind: the earlier one has stopped.
        #expect(try self.known(gateway, "appState") as? String == "forceQuit")
        #expect(try bus.asked() == asked)
        try worker.process.write("machine \(self.token) \(self.root(gateway).path) appState")
        try self.eventually(gateway, "background")
        try worker.process.endInput()
        #expect(try worker.stop() == 0)
    }

    private func root(_ gateway: RunningGateway) -> URL { gateway.folder.appendingPathComponent("machine") }

    private func bus(_ gateway: RunningGateway) throws -> LoginBus {
        #expect(try gateway.wakegate("device", "register", self.token, "--topic", self.topic).status == 0)
        return try LoginBus(root: self.root(gateway))
    }

    private func conditions(_ gateway: RunningGateway, _ conditions: String...) throws {
        for condition in conditions {
            #expect(try gateway.wakegate("device", "conditions", self.token, condition).status == 0)
        }
    }

    private func worker(_ gateway: RunningGateway, _ options: [String]) throws -> WorkerProcess {
        let options = options + ["--device", self.token, "--system-root", self.root(gateway).path]
        return try WorkerProcess(gateway, topic: self.topic, options, script: "exit 0")
    }

    private func known(_ gateway: RunningGateway, _ name: String) throws -> Any? {
        (try gateway.admin("/v1/devices/\(self.token)").value("conditions") as? [String: Any])?[name]
    }

    private func eventually(_ gateway: RunningGateway, _ state: String) throws {
        try gateway.eventually("appState \(state)") { try self.known(gateway, "appState") as? String == state }
    }
}
