import Foundation
import Glibc
import Testing
import WakeGateTestKit

@Suite("The units of systemd", .timeLimit(.minutes(15)))
struct SystemdTests {
    private static let program = "/usr/bin/wakegate"
    private let folder: TemporaryFolder

    init() throws { self.folder = try TemporaryFolder() }

    @Test("The units are sound for systemd, with the program that was built")
    func verify() throws {
        let units = try [
            self.unit("wakegate-worker@.service", as: "wakegate-worker@example.service"),
            self.unit("wakegate-transfers@.service", as: "wakegate-transfers@example.service"),
            self.unit("wakegate-transfers@.socket", as: "wakegate-transfers@example.socket"),
            self.unit("wakegate.service"), self.unit("wakegate-edge.socket"), self.unit("wakegate-admin.socket"),
        ]
        let ended = try ChildProcess.run("systemd-analyze", ["verify", "--man=no"] + units)
        #expect(ended.status == 0)
        #expect(ended.output + ended.errors == "")
    }

    @Test(
        "The exposure of each unit is low by systemd's own score",
        arguments: [
            ("wakegate-worker@.service", 20), ("wakegate.service", 14), ("wakegate-transfers@.service", 18),
        ]
    )
    func security(name: String, maximum: Int) throws {
        let unit = try self.unit(name, as: name.replacing("@", with: "@example"))
        let ended = try ChildProcess.run(
            "systemd-analyze",
            ["security", "--no-pager", "--offline=true", "--threshold=\(maximum)", unit]
        )
        #expect(ended.status == 0, "\(ended.output) \(ended.errors)")
        #expect(ended.output.contains("Overall exposure level"))
    }

    @Test("A check in a unit that hides the system's locks does not mistake its gateway's own ports for a fault")
    func check() throws {
        let unit = try Checkout.text("deploy/systemd/wakegate.service")
        #expect(unit.contains("\nProcSubset=pid\n") && unit.contains("\nExecReload=\(Self.program) serve "))
        let gateway = try RunningGateway()
        let other = try RestartFolder()
        defer { withExtendedLifetime(other) {} }
        func check(_ state: String) throws -> ChildProcess.Ended {
            let script = #"mount -t proc -o subset=pid proc /proc && test ! -e /proc/locks && exec "$@""#
            let serve = ["serve", "--check", "--edge", "off", "--admin", gateway.admin, "--state", state]
            return try ChildProcess.run(
                "unshare",
                ["--mount", "sh", "-c", script, "sh", RunningGateway.program] + serve
            )
        }
        let own = try check(gateway.folder.appendingPathComponent(".wakegate").path)
        #expect(own.status == 0, "\(own)")
        let strange = try check(other.folder.appendingPathComponent("state").path)
        #expect(strange.status == EX_CONFIG && strange.errors.contains("\(gateway.admin) is in use"), "\(strange)")
    }

    @Test("A stop may take longer than the drain, and the sockets are named after the listeners")
    func agreement() throws {
        let service = try Checkout.text("deploy/systemd/wakegate.service")
        let stop = try #require(service.firstMatch(of: #/(?m)^TimeoutStopSec=([0-9]+)$/#).flatMap { Int($0.1) })
        #expect(stop > 10 + 15, "drainTimeout and the margin of ServiceNotice")
        for line in ["Type=notify", "WatchdogSec=30", "DynamicUser=yes", "StateDirectory=wakegate", "UMask=0077"] {
            #expect(service.contains("\n\(line)\n"))
        }
        for name in ["edge", "admin"] {
            let socket = try Checkout.text("deploy/systemd/wakegate-\(name).socket")
            #expect(
                socket.contains("\nFileDescriptorName=\(name)\n") && socket.contains("\nService=wakegate.service\n")
            )
        }
    }

    @Test("An agent's socket is where clients look for it, belongs to its user, and outlives the service")
    func transfersAgreement() throws {
        let service = try Checkout.text("deploy/systemd/wakegate-transfers@.service")
        let socket = try Checkout.text("deploy/systemd/wakegate-transfers@.socket")
        let place = "/run/wakegate-transfers/%i/transfers.sock"
        #expect(service.contains(" --listen unix:\(place)\n"))
        for line in ["ListenStream=\(place)", "SocketUser=%i", "SocketMode=0600"] {
            #expect(socket.contains("\n\(line)\n"), "\(line)")
        }
        let kept = ["RuntimeDirectory=wakegate-transfers/%i", "RuntimeDirectoryPreserve=yes"]
        for line in kept + ["Type=notify", "WatchdogSec=30", "StateDirectoryMode=0700"] {
            #expect(service.contains("\n\(line)\n"), "\(line)")
        }
        // A single socket is passed without a name, and `Service=` and `Accept=` keep their defaults.
        #expect(!socket.contains("\nService=") && !socket.contains("\nAccept="))
    }

    /// Returns the path of a copy of a unit file that names the built program.
    private func unit(_ name: String, as instance: String? = nil) throws -> String {
        let text = try Checkout.text("deploy/systemd/\(name)")
        try #require(name.hasSuffix(".socket") || text.contains("ExecStart=\(Self.program) "))
        let unit = self.folder.url.appendingPathComponent(instance ?? name)
        let program = text.replacingOccurrences(of: Self.program, with: RunningGateway.program)
        try program.write(to: unit, atomically: true, encoding: .utf8)
        return unit.path
    }
}
